"""Addresses that answer to whoever is on the machine."""

import socket
from typing import Any

from .probing import Clues

CONNECT_S = 0.3


def metadata(clues: Clues) -> Any:
    """Connect to a service of metadata, and ask nothing: the answer might be somebody's credentials."""
    with socket.create_connection(clues["metadata"], CONNECT_S) as connection:
        return connection.getpeername()
