"""Serves an ASGI application on a socket of this process, with the server's own connections."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

import uvicorn
from uvicorn.server import ServerState

from cloudpar_master.server.account_shares import Shares
from cloudpar_master.server.connections import GuardedConnection, Strangers
from cloudpar_master.server.small_reads import SmallReads


class Line(NamedTuple):
    """A connection: the client's end and the server's end of it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    server: GuardedConnection

    async def talk(self, request: bytes, until: bytes) -> bytes:
        """Send a request, and return the answer up to its end."""
        self.writer.write(request)
        return await self.reader.readuntil(until)

    async def closed(self) -> bool:
        """Wait until the server has closed the connection, and return whether it has said nothing before."""
        try:
            return await self.reader.read() == b""
        except ConnectionError:
            return True

    async def flood(self, start: bytes, repeated: bytes, end: bytes) -> bytes:
        """Send 8 MB, and return what the server says until it closes the connection; b"" if it closes it at once."""
        try:
            self.writer.write(start)
            for _ in range(8_000_000 // len(repeated)):
                self.writer.write(repeated)
                await self.writer.drain()
            self.writer.write(end)
            self.writer.write_eof()
            return await self.reader.read()
        except ConnectionError:
            return b""


Dial = Callable[[], Awaitable[Line]]


async def until(condition: Callable[[], bool]) -> None:
    """Let others run until a condition holds."""
    while not condition():  # noqa: ASYNC110 - conditions of the server set no event
        await asyncio.sleep(0)


@asynccontextmanager
async def dialing(
    app: Any, strangers: Strangers | None = None, shares: Shares | None = None, keep_alive_s: int = 75
) -> AsyncIterator[Dial]:
    """Serve an application. Yields a function that connects to it."""
    config = uvicorn.Config(app, log_config=None, lifespan="off", timeout_keep_alive=keep_alive_s)
    config.load()
    callers, state = (strangers or Strangers(), shares or Shares()), ServerState()
    made = asyncio.Queue[GuardedConnection]()
    lines: list[Line] = []

    def accept() -> SmallReads:
        connection = GuardedConnection(*callers, config=config, server_state=state, app_state={})
        made.put_nowait(connection)
        return SmallReads(connection)

    server = await asyncio.get_running_loop().create_server(accept, "127.0.0.1", 0)

    async def dial() -> Line:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
        lines.append(Line(reader, writer, await made.get()))
        await until(lambda: lines[-1].server.transport is not None)
        return lines[-1]

    async with server:
        yield dial
        for line in lines:
            line.writer.close()
            with suppress(ConnectionError):
                await line.writer.wait_closed()
            line.server.transport.abort()
        for task in list(state.tasks):
            task.cancel()
        await asyncio.gather(*state.tasks, return_exceptions=True)
