"""Guarantee 21: a client without a token costs the master little, and shuts out no client that has one."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from uvicorn.server import ServerState

from cloudpar_master.server import connections
from cloudpar_master.server.connections import HEAD_BYTES, GuardedConnection, Strangers, admitted
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import Hello
from cloudpar_protocol.limits import BODY_BYTES

from .masters import Master

pytestmark = pytest.mark.anyio

MOST = 3
HELLO = b"GET /%s HTTP/1.1\r\nHost: here\r\n\r\n"
Dial = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Admit requests for /friend."""
    request = Request(scope, receive)
    if request.url.path == "/friend":
        admitted(request)
    await Response(b"hello")(scope, receive, send)


@pytest.fixture
async def dial() -> Any:
    """A function that connects to a server with room for MOST strangers."""
    config = uvicorn.Config(app, log_config=None, lifespan="off")
    config.load()
    strangers, state = Strangers(MOST), ServerState()
    server = await asyncio.get_running_loop().create_server(
        lambda: GuardedConnection(strangers, config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    lines: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def connect() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        lines.append(await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1]))
        return lines[-1]

    async with server:
        yield connect
        for _, writer in lines:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


async def talk(line: tuple[asyncio.StreamReader, asyncio.StreamWriter], name: bytes) -> bytes:
    """Send a request, and return the end of the answer."""
    reader, writer = line
    writer.write(HELLO % name)
    return await reader.readuntil(b"hello")


async def closed(line: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> bool:
    """Wait until the server has closed a connection."""
    try:
        return await line[0].read() == b""
    except ConnectionError:
        return True


async def test_g21_connections_without_a_token_never_shut_out_one_with_a_token(dial: Dial) -> None:
    friend = await dial()
    assert await talk(friend, b"friend")
    strangers = [await dial() for _ in range(10 * MOST)]
    for stranger in strangers[:-MOST]:
        assert await closed(stranger)
    assert await talk(friend, b"friend")
    assert await talk(await dial(), b"friend")
    assert await talk(strangers[-1], b"stranger")


async def test_g21_a_connection_that_ends_makes_room(dial: Dial) -> None:
    first = await dial()
    assert await talk(first, b"stranger")
    for _ in range(10 * MOST):
        other = await dial()
        assert await talk(other, b"stranger")
        other[1].close()
        await other[1].wait_closed()
    assert await talk(first, b"stranger")


@pytest.mark.parametrize("sent", [b"", b"POST /v1/hello HTTP/1.1\r\nHost:", HELLO % b"friend" + b"POST /"])
async def test_g21_half_a_head_is_not_held(dial: Dial, sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.05)
    line = await dial()
    line[1].write(sent)
    if b"friend" in sent:
        await line[0].readuntil(b"hello")
    assert await closed(line)


async def test_g21_a_head_has_a_limit(dial: Dial) -> None:
    line = await dial()
    writer = line[1]
    writer.write(b"GET / HTTP/1.1\r\n")
    for number in range(2 * HEAD_BYTES // 1000):
        writer.write(b"X-%06d: %s\r\n" % (number, b"x" * 1000))
    assert await closed(line)


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
