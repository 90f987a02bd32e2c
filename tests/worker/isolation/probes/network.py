"""Probes for addresses that answer processes of this machine, such as a metadata service with credentials.

They send no request, because the answer might contain real credentials.
"""

import ctypes
import socket
import struct
from typing import Any

from .probing import Clues, call, probe

CONNECT_S = 0.3
SMC, MPTCP, FASTOPEN = 256, 262, 0x20000000


def connect_by(protocol: int, clues: Clues) -> Any:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol) as connection:
        connection.settimeout(CONNECT_S)
        connection.connect(clues["metadata"])
        return connection.getpeername()


@probe("the instance metadata", open_otherwise=True)
def metadata(clues: Clues) -> Any:
    with socket.create_connection(clues["metadata"], CONNECT_S) as connection:
        return connection.getpeername()


@probe("the instance metadata, by an IPv6 address that maps to its IPv4 address", open_otherwise=True)
def metadata_mapped(clues: Clues) -> Any:
    host, port = clues["metadata"]
    with socket.create_connection((f"::ffff:{host}", port), CONNECT_S) as connection:
        return connection.getpeername()


@probe("the instance metadata, by multipath TCP", open_otherwise=True)
def metadata_multipath(clues: Clues) -> Any:
    return connect_by(MPTCP, clues)


@probe("the instance metadata, by sendto with TCP Fast Open", open_otherwise=True)
def metadata_fast(clues: Clues) -> Any:
    with socket.socket() as connection:
        return connection.sendto(b"?", FASTOPEN, clues["metadata"])


@probe("the instance metadata, by sendmsg with TCP Fast Open", open_otherwise=True)
def metadata_fast_message(clues: Clues) -> Any:
    with socket.socket() as connection:
        return connection.sendmsg([b"?"], [], FASTOPEN, clues["metadata"])


@probe("the instance metadata, by sendmmsg with TCP Fast Open", open_otherwise=True)
def metadata_fast_messages(clues: Clues) -> Any:
    host, port = clues["metadata"]
    address = struct.pack("!HH4s8x", 0, port, socket.inet_aton(host))
    address = struct.pack("=H", socket.AF_INET) + address[2:]
    body, name = ctypes.create_string_buffer(b"?"), ctypes.create_string_buffer(address, 16)
    vector = ctypes.create_string_buffer(struct.pack("QQ", ctypes.addressof(body), 1), 16)
    head = struct.pack("QIxxxxQQQQixxxxIxxxx", ctypes.addressof(name), 16, ctypes.addressof(vector), 1, 0, 0, 0, 0)
    with socket.socket() as connection:
        return call((307, 269), connection.fileno(), head, 1, FASTOPEN) == 1


@probe("the instance metadata, by SMC, a protocol over TCP")
def metadata_otherwise(clues: Clues) -> Any:
    return connect_by(SMC, clues)


@probe("listening at the port of a service that restarts", open_otherwise=True)
def port_of_a_service(clues: Clues) -> Any:
    with socket.create_server(("127.0.0.1", clues["service_port"])) as server:
        return server.getsockname()


@probe("creating rules of Landlock, each of which copies the rules on ports", open_otherwise=True)
def more_rules(clues: Clues) -> Any:
    return call((444, 444), struct.pack("QQQ", 0, 0, 1), 24, 0) >= 0
