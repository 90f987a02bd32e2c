"""The agent's decisions: a state machine without I/O, clocks or threads."""
