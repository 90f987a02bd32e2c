"""Guarantee 21: a client without a token costs the master little, and shuts out no client that has one."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import uvloop
from starlette.requests import Request
from starlette.responses import Response

from cloudpar_master.server import bounded_connection
from cloudpar_master.server.bounded_connection import HEAD_BYTES
from cloudpar_master.server.connections import Strangers, admitted
from cloudpar_master.server.process import ACCEPTED, descriptors
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import Hello
from cloudpar_protocol.limits import BODY_BYTES
from support.master_process import Master
from support.waiting import HANG_S

from .dialing import Dial, Line, dialing, until

pytestmark = pytest.mark.anyio

MOST = 3
HELLO = b"GET /%s HTTP/1.1\r\nHost: here\r\n\r\n"


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Admit requests for /friend, and answer those for /never never."""
    request = Request(scope, receive)
    if request.url.path == "/friend":
        admitted(request)
    if request.url.path == "/never":
        await asyncio.Event().wait()
    await Response(b"hello")(scope, receive, send)


@pytest.fixture
async def dial() -> AsyncIterator[Dial]:
    """A function that connects to a server with room for MOST strangers."""
    async with dialing(app, Strangers(MOST)) as connect:
        yield connect


async def talk(line: Line, name: bytes) -> bytes:
    """Send a request, and return the answer."""
    return await line.talk(HELLO % name, b"hello")


async def test_g21_connections_without_a_token_never_shut_out_one_with_a_token(dial: Dial) -> None:
    friend = await dial()
    assert await talk(friend, b"friend")
    strangers = [await dial() for _ in range(10 * MOST)]
    for stranger in strangers[:-MOST]:
        assert await stranger.closed()
    assert await talk(friend, b"friend")
    assert await talk(await dial(), b"friend")
    assert await talk(strangers[-1], b"stranger")


async def test_g21_no_connection_is_closed_before_what_it_has_sent_is_read(dial: Dial) -> None:
    """The server may accept many connections of strangers at once, together with that of a client with a token."""
    address = (await dial()).writer.get_extra_info("peername")
    with ExitStack() as stack:
        friend, *_ = [stack.enter_context(socket.create_connection(address)) for _ in range(10 * MOST)]
        friend.sendall(HELLO % b"friend")
        friend.setblocking(False)
        said = b""
        while not said.endswith(b"hello"):
            part = await asyncio.get_running_loop().sock_recv(friend, 1_000)
            assert part
            said += part


async def test_g21_connections_that_send_nothing_are_closed_before_one_that_waits_for_its_turn(dial: Dial) -> None:
    waiting = await dial()
    waiting.writer.write(HELLO % b"never")
    await until(lambda: waiting.server._tasks == 1)
    silent = [await dial() for _ in range(10 * MOST)]
    assert await silent[-MOST - 1].closed()
    assert not waiting.server.transport.is_closing()


async def test_g21_the_request_of_a_stranger_who_hangs_up_takes_no_memory(dial: Dial) -> None:
    line = await dial()
    line.writer.write(HELLO % b"never")
    await until(lambda: line.server._tasks == 1)
    line.writer.close()
    async with asyncio.timeout(HANG_S):
        await until(lambda: line.server._tasks == 0)


def test_g21_a_turn_of_the_event_loop_accepts_many_connections() -> None:
    """The loop accepts one for each descriptor: strangers once filled the queue of connections faster than that."""

    async def turns_of_loop() -> int:
        made, turns = list[asyncio.BaseTransport](), 0

        class Made(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                made.append(transport)

        loop, listening = asyncio.get_running_loop(), socket.create_server(("127.0.0.1", 0))
        servers = [await loop.create_server(Made, sock=each, backlog=512) for each in descriptors(listening)]
        with ExitStack() as stack:
            for _ in range(10 * ACCEPTED):
                stack.enter_context(socket.create_connection(listening.getsockname()))
            while len(made) < 10 * ACCEPTED:
                turns += 1
                await asyncio.sleep(0)
        for server in servers:
            server.close()
        return turns

    assert uvloop.run(turns_of_loop()) < 10 * ACCEPTED // 2


async def test_g21_a_connection_that_ends_makes_room(dial: Dial) -> None:
    first = await dial()
    assert await talk(first, b"stranger")
    for _ in range(10 * MOST):
        other = await dial()
        assert await talk(other, b"stranger")
        other.writer.close()
        await other.writer.wait_closed()
    assert await talk(first, b"stranger")


@pytest.mark.parametrize("answered", [False, True])
@pytest.mark.parametrize("sent", [b"", b"\r\n", b"POST /v1/hello HTTP/1.1\r\nHost:"])
async def test_g21_half_a_head_is_not_held(
    dial: Dial, sent: bytes, answered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_connection, "HEAD_S", 0.05)
    line = await dial()
    if answered:
        await talk(line, b"friend")
    line.writer.write(sent or b"\r\n" * answered)
    assert await line.closed()


async def test_g21_a_head_has_a_limit(dial: Dial) -> None:
    line = await dial()
    field = b"X: %s\r\n" % (b"x" * 1000)
    assert not (await line.flood(b"GET / HTTP/1.1\r\n", field, b"\r\n")).startswith(b"HTTP/1.1 200")
    assert HEAD_BYTES < 8_000_000


def test_g21_a_refused_request_is_answered_before_its_body_has_come(tmp_path: Path) -> None:
    with Master(tmp_path, stdin=True) as master:
        connection = master.connect()
        connection.putrequest("POST", routes.HELLO.path)
        connection.putheader("Authorization", "Bearer unknown")
        connection.putheader("Content-Length", str(BODY_BYTES))
        connection.endheaders(b"the start of a body")
        assert connection.getresponse().status == 401
        connection.close()
        assert master.call("user", routes.HELLO, Hello()).role == "user"
