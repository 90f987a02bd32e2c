"""Sends requests to an ASGI application in this process, without a socket."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

Message = MutableMapping[str, Any]
Application = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]


class Answer(NamedTuple):
    """An answer, with header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Exchange:
    """One request: its body comes in parts, and its client may hang up."""

    def __init__(
        self, method: str, url: str, body: bytes | Sequence[bytes] = b"", headers: Mapping[str, str] | None = None
    ) -> None:
        parts = urlsplit(url)
        self.scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(parts.path),
            "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in (headers or {}).items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2),
        }
        self._parts = [body] if isinstance(body, bytes) else list(body)
        self._hung_up = asyncio.Event()
        self._sent: list[Message] = []

    def hang_up(self) -> None:
        """Let the client hang up."""
        self._hung_up.set()

    async def receive(self) -> Message:
        """Return the parts of the body, and then nothing until the client hangs up."""
        if self._parts:
            part = self._parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(self._parts)}
        await self._hung_up.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Keep what the application answers."""
        self._sent.append(message)

    async def run(self, app: Application) -> Answer:
        """Let the application answer. What it raises after its answer, for the server's log, is raised here."""
        await app(self.scope, self.receive, self.send)
        return self.answer()

    def answer(self) -> Answer:
        """Return the answer."""
        start, *rest = self._sent
        headers = {name.decode(): value.decode("latin-1") for name, value in start["headers"]}
        return Answer(start["status"], headers, b"".join(message.get("body", b"") for message in rest))


def exchange(
    app: Application, method: str, url: str, body: bytes = b"", headers: Mapping[str, str] | None = None
) -> Answer:
    """Send a request, and return its answer."""
    return asyncio.run(Exchange(method, url, body, headers).run(app))
