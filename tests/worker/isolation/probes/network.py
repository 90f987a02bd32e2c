"""Addresses that answer to whoever is on the machine: a service of metadata, such as that of credentials.

Nothing is asked of it: the answer might be somebody's.
"""

import socket
from typing import Any

from .probing import Clues, probe

CONNECT_S = 0.3
MPTCP, FASTOPEN = 262, 0x20000000


@probe("the instance metadata", open_otherwise=True)
def metadata(clues: Clues) -> Any:
    with socket.create_connection(clues["metadata"], CONNECT_S) as connection:
        return connection.getpeername()


@probe("the instance metadata, by an address of IPv6 that stands for theirs", open_otherwise=True)
def metadata_mapped(clues: Clues) -> Any:
    host, port = clues["metadata"]
    with socket.create_connection((f"::ffff:{host}", port), CONNECT_S) as connection:
        return connection.getpeername()


@probe("the instance metadata, by multipath TCP", open_otherwise=True)
def metadata_multipath(clues: Clues) -> Any:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP) as connection:
        connection.settimeout(CONNECT_S)
        connection.connect(clues["metadata"])
        return connection.getpeername()


@probe("the instance metadata, by sendto with TCP Fast Open", open_otherwise=True)
def metadata_fast(clues: Clues) -> Any:
    with socket.socket() as connection:
        return connection.sendto(b"?", FASTOPEN, clues["metadata"])


@probe("the instance metadata, by sendmsg with TCP Fast Open", open_otherwise=True)
def metadata_fast_message(clues: Clues) -> Any:
    with socket.socket() as connection:
        return connection.sendmsg([b"?"], [], FASTOPEN, clues["metadata"])
