"""Guarantee 21: whatever comes on a connection, the master needs little memory for it, also without a token."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pytest

from cloudpar_protocol import codec, routes
from cloudpar_protocol.client_messages import Hello
from cloudpar_protocol.limits import HOLD_S
from support.master_process import Master
from support.waiting import HANG_S

from .served import awaiting

CONNECTIONS = 8
SENT_BYTES = 6_000_000
"""How much a client sends on each connection, if the master reads it."""
GROWTH_BYTES = 20_000_000
"""Less than the clients send together, and many times less than what the parts of a request need as objects."""

POST = b"POST /v1/hello HTTP/1.1\r\nHost: m\r\n"
AWAIT = codec.encode(awaiting(hold_s=HOLD_S))
HELD = b"POST /v1/await_tasks HTTP/1.1\r\nHost: m\r\nAuthorization: Bearer user\r\nContent-Length: %d\r\n\r\n%s" % (
    len(AWAIT),
    AWAIT,
)
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def master(tmp_path: Path) -> Iterator[Master]:
    with Master(tmp_path, stdin=True) as master:
        yield master
        assert master.end() == (0, b"")


def flood(master: Master, peer: socket.socket, start: bytes, repeated: bytes) -> None:
    """Send without end, until enough is sent, or the master closes the connection or no longer reads it."""
    peer.setblocking(False)
    sent, refused, rest = 0, 0, start
    while sent < SENT_BYTES and refused < 5:
        rest = rest or repeated * (60_000 // len(repeated))
        try:
            written = peer.send(rest)
        except BlockingIOError:
            refused += 1
            assert master.call("user", routes.HELLO, Hello()).role == "user"  # it has had the time to read more
        else:
            sent, refused, rest = sent + written, 0, rest[written:]


@pytest.mark.parametrize(
    ("start", "repeated"),
    [
        (CHUNKED + b"0\r\n", b"name: value\r\n"),
        (CHUNKED + b"0\r\n", b"a:\r\n"),
        (CHUNKED + b"0\r\nname: ", b"x"),
        (b"", POST + b"\r\n"),
        (b"", b"GET / HTTP/1.1\r\n\r\n"),
        (HELD, b"GET / HTTP/1.1\r\n\r\n"),
        (POST, b"a:\r\n"),
        (POST + b"name: ", b"x"),
        (POST + b"name: value\r\n", b" more\r\n"),
        (b"POST /", b"x"),
        (CHUNKED, b"0"),
        (CHUNKED + b"1;name=", b"x"),
        (CHUNKED, b"1\r\nx\r\n"),
        (POST.replace(b"hello", b"prove") + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        (POST + b"Content-Length: 1000000000\r\n\r\n", b"x"),
        (b"", b"\r\n"),
        (b"", POST + b"Expect: 100-continue\r\nContent-Length: 1\r\n\r\nx"),
    ],
    ids=[
        "trailers", "short trailers", "trailer", "requests", "short requests", "requests while one is held", "fields",
        "field", "lines of a field", "path", "zeros", "extension", "chunks", "challenge", "body", "line breaks",
        "expectations",
    ],
)  # fmt: skip
def test_g21_what_comes_on_a_connection_fills_no_memory(master: Master, start: bytes, repeated: bytes) -> None:
    process = psutil.Process(master.process.pid)
    assert master.call("user", routes.HELLO, Hello()).role == "user"
    before = process.memory_info().rss
    with ExitStack() as peers:
        for _ in range(CONNECTIONS):
            peer = peers.enter_context(socket.create_connection(("127.0.0.1", master.port), timeout=HANG_S))
            with suppress(ConnectionError):
                flood(master, peer, start, repeated)
        assert process.memory_info().rss - before < GROWTH_BYTES
