"""The pure part of the master: it uses no I/O, no clock, no environment and no randomness.

From the state of a package and from events, it computes the next state and the effects. It also computes the sizes of
chunks, whose turn it is, and how long clients and workers wait.
"""
