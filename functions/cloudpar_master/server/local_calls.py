"""Serves the calls of a pool and its worker over a Unix socket, in frames instead of HTTP; see `frames`."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any, Final

from starlette.requests import Request

from cloudpar_protocol import codec, frames
from cloudpar_protocol.limits import BODY_BYTES
from cloudpar_protocol.link_urls import FILES, HEADER

from .app import App
from .bodies import CLIENT_GONE

BACKLOG: Final = 512

GRACE_S: Final = 1.0
"""How long `LocalCalls.close` waits for the calls that are under way, in seconds."""

log = logging.getLogger(__name__)


class LocalCalls:
    """A server for the callers of one pool.

    Attributes:
        connections: The open connections.
        ends: Whether the server ends, so that it serves no further calls.
    """

    def __init__(self, app: App) -> None:
        self.app = app
        self.connections: set[LocalConnection] = set()
        self.ends = False
        self._server: asyncio.Server | None = None

    async def listen(self, path: Path) -> None:
        """Make the socket and serve its connections. If this is not possible, all callers use HTTP.

        The socket of a master that was killed is replaced.
        """
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):  # for example, the path is too long for a socket
            self._server = await loop.create_unix_server(lambda: LocalConnection(self), str(path), backlog=BACKLOG)

    async def close(self) -> None:
        """Accept no more connections and calls, and wait for the answers to the calls that are under way.

        After this, no call uses the database.
        """
        self.ends = True
        if self._server is not None:
            self._server.close()
        for connection in self.connections:
            connection.end()
        closed = [asyncio.ensure_future(each.closed.wait()) for each in self.connections]
        if closed:
            _, waiting = await asyncio.wait(closed, timeout=GRACE_S)
            for each in waiting:
                each.cancel()
        await asyncio.gather(*[each.abort() for each in self.connections], return_exceptions=True)


class LocalConnection(asyncio.Protocol):
    """A connection. It serves one call after the other, and the next one when the caller has read the answer.

    Attributes:
        closed: Set when the connection is closed.
    """

    def __init__(self, server: LocalCalls) -> None:
        self._server = server
        self._transport: Any = None
        self._received = bytearray()
        self._headers: dict[str, str] = {}
        self._gone = asyncio.Event()
        self._unread = False
        self._task: asyncio.Task[None] | None = None
        self.closed = asyncio.Event()

    def end(self) -> None:
        """Close the connection, after the answer to a call that is under way."""
        if self._task is None:
            self._transport.close()

    async def abort(self) -> None:
        """Close the connection at once, and end a call that is under way."""
        self._transport.abort()
        if self._task is not None:
            self._task.cancel()
            await self._task

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the connection's transport."""
        self._transport = transport
        self._transport.set_write_buffer_limits(high=0)
        self._server.connections.add(self)

    def data_received(self, data: bytes) -> None:
        """Collect a call, and serve it when it is complete."""
        self._received += data
        if self._task is not None:  # the SDK and the worker send no call before they have the last answer
            self._transport.pause_reading()
        self._advance()

    def eof_received(self) -> bool:
        """The caller sends no more calls. If one is under way, it still gets its answer."""
        self._gone.set()
        return self._task is not None

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's interface
        """Stop a call that is held."""
        self._gone.set()
        self.closed.set()
        self._server.connections.discard(self)

    def pause_writing(self) -> None:
        """Serve no further call: the caller has not read the last answer."""
        self._unread = True

    def resume_writing(self) -> None:
        """Serve the next call."""
        self._unread = False
        self._advance()

    def _advance(self) -> None:
        while not (self._task or self._unread or self._server.ends) and len(self._received) >= frames.CALL.size:
            name_bytes, size = frames.CALL.unpack_from(self._received)
            start = frames.CALL.size + name_bytes
            if len(self._received) < start + (0 if size > BODY_BYTES else size):
                return
            path = self._received[frames.CALL.size : start].decode(errors="replace")
            body = bytes(memoryview(self._received)[start : start + size])
            del self._received[: start + size]
            if path:
                self._task = asyncio.get_running_loop().create_task(self._serve(path, body, size))
            else:
                self._headers = {
                    "authorization": f"Bearer {body.decode(errors='replace')}",
                    "content-type": codec.MSGPACK,
                    "accept": codec.MSGPACK,
                    HEADER.lower(): FILES,
                }

    async def _serve(self, path: str, body: bytes, size: int) -> None:
        try:
            request = LocalRequest(path, self._headers, body, size, self._gone)
            response, unexpected = await self._server.app.response(request)
            if unexpected is not None:
                log.error("a call failed", exc_info=unexpected)
            if response.status_code != CLIENT_GONE and not self._transport.is_closing():
                self._transport.write(frames.answer(response.status_code, response.body))
        except BaseException:
            self._transport.abort()  # otherwise the caller would wait for an answer
            raise
        finally:
            self._task = None
        if self._gone.is_set() or self._server.ends or size > BODY_BYTES:
            self._transport.close()
        else:
            self._transport.resume_reading()
            self._advance()


class LocalRequest(Request):
    """A call in the form of a request of HTTP, so that `App` serves both in the same way."""

    def __init__(self, path: str, headers: dict[str, str], body: bytes, size: int, gone: asyncio.Event) -> None:
        super().__init__({"type": "http", "method": "POST", "path": path, "headers": ()}, self._hang_up)
        self._by_name = headers if size <= BODY_BYTES else headers | {"content-length": str(size)}
        self._whole = body
        self._gone = gone

    @property
    def headers(self) -> Mapping[str, str]:  # type: ignore[override]  # a mapping is all that this package uses
        """The headers, by name in lower case."""
        return self._by_name

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """Yield the body."""
        yield self._whole

    async def _hang_up(self) -> dict[str, str]:
        await self._gone.wait()
        return {"type": "http.disconnect"}
