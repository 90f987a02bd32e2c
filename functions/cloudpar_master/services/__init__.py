"""The calls of the protocol, built on the ports. Therefore the same code runs on every adapter.

Errors of the ports' storage (see `ports`) pass through the services. The entry `Raises` of a docstring does not name
them.
"""
