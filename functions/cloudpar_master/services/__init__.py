"""The services, which carry out the calls of the protocol. They use only the ports, so they run on every adapter.

Errors of the ports' storage (see `ports`) pass through the services. The section `Raises` of a docstring does not name
them.
"""
