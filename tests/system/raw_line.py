"""A client that breaks the rules of HTTP: it sends any bytes, and does not wait between requests."""

import asyncio
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from cloudpar_protocol import codec
from cloudpar_protocol.routes import Route


class Line:
    """One connection to a master. It is opened with the first request, and again after `close`."""

    def __init__(self, endpoint: str, token: str) -> None:
        self._address = urlsplit(endpoint)
        self._token = token
        self._open: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def _streams(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._open is None:
            self._open = await asyncio.open_connection(self._address.hostname, self._address.port)
        return self._open

    def close(self) -> None:
        if self._open is not None:
            self._open[1].close()
        self._open = None

    async def write(self, data: bytes) -> None:
        """Send bytes as they are."""
        _, writer = await self._streams()
        writer.write(data)
        await writer.drain()
        await asyncio.sleep(0)  # `drain` lets no other task run while the master reads fast

    def head(self, method: str, target: str, headers: dict[str, str]) -> bytes:
        """The head of a request with the token."""
        lines = [f"{method} {target} HTTP/1.1", f"Host: {self._address.netloc}", f"Authorization: Bearer {self._token}"]
        given = {"Content-Type": codec.MSGPACK} | headers
        return "\r\n".join([*lines, *(f"{name}: {value}" for name, value in given.items()), "", ""]).encode()

    async def send(
        self, method: str, target: str, body: bytes, headers: dict[str, str] | None = None, size: int | None = None
    ) -> None:
        """Send a request. `size` is the length that its head claims."""
        size = len(body) if size is None else size
        await self.write(self.head(method, target, {"Content-Length": str(size)} | (headers or {})) + body)

    async def answer(self) -> tuple[int, bytes]:
        """Read the next answer.

        Raises:
            EOFError: The master has closed the connection.
        """
        reader, _ = await self._streams()
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = dict(field.lower().split(": ", 1) for field in head[1:] if field)
        body = await reader.readexactly(int(fields.get("content-length", 0)))
        if fields.get("connection") == "close":
            self.close()
        return int(head[0].split()[1]), body

    async def call(self, route: Route[Any, Any], message: Struct) -> tuple[int, bytes]:
        """Make a call, and return the status and the body of its answer."""
        await self.send("POST", route.path, codec.encode(message))
        return await self.answer()
