"""The routes of the protocol. The same code runs on every adapter: ports in, protocol messages out."""
