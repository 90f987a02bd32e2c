"""The calls of the protocol, built on the ports. Therefore the same code runs on every adapter."""
