"""A task that needs the network. It is in a module without other imports, which a worker can import anywhere."""

import socket


def connect(place: tuple[str, int]) -> str:
    """Connect to a server."""
    with socket.create_connection(place, 5.0):
        return "connected"
