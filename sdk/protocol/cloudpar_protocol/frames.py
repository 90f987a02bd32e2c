"""The calls of one machine: frames on a Unix socket between a pool's own master, its worker and the pool itself.

HTTP costs a call more time than the call itself takes. The three processes belong to one user, and only this user can
open the folder that contains the socket. So a connection needs no proof of who is at its other end.

A connection starts with the frame of a call without a name, whose body is the caller's token. Then each call gets one
answer before the next call is sent. All bodies are MessagePack.
"""

from struct import Struct
from typing import Final

CALL: Final = Struct("!BI")
"""The start of a call: the number of bytes of its path, and of its body. Path and body follow."""

ANSWER: Final = Struct("!HI")
"""The start of an answer: its status, as in HTTP, and the number of bytes of its body. The body follows."""

SOCKET: Final = "calls"
"""The name of the socket in the data folder of a pool's own master."""


def call(path: str, body: bytes) -> bytes:
    """Return the frame of a call.

    >>> call("/v1/hello", b"body")[CALL.size:]
    b'/v1/hellobody'
    """
    name = path.encode()
    return CALL.pack(len(name), len(body)) + name + body


def answer(status: int, body: bytes | memoryview) -> bytes:
    """Return the frame of an answer.

    >>> ANSWER.unpack(answer(200, b""))
    (200, 0)
    """
    return b"".join((ANSWER.pack(status, len(body)), body))
