"""What a connection may cost the master before a valid token has come on it."""

import asyncio
import resource
from contextlib import suppress
from typing import Any, Final

from starlette.requests import Request
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES: Final = 64 * 1024
"""The head of a request may be this long. The server reads a little more before it notices the excess."""

HEAD_S: Final = 20.0
"""The head of a request must have come this many seconds after its first byte, or after the connection."""

STRANGERS: Final = 256
"""How many connections on which no valid token has come may be open."""


class Strangers:
    """The connections on which no valid token has come yet, in the order of their coming.

    If there are `most` of them, the next one closes the oldest. So connections without a token
    shut out no client that has one: such a client shows its token at once.
    """

    def __init__(self, most: int = STRANGERS) -> None:
        self._most = most
        self._connections: dict[GuardedConnection, None] = {}

    def add(self, connection: "GuardedConnection") -> None:
        """Note a new connection."""
        if len(self._connections) >= self._most:
            oldest = next(iter(self._connections))
            self.remove(oldest)
            oldest.transport.abort()
        self._connections[connection] = None

    def remove(self, connection: "GuardedConnection") -> None:
        """Remove a connection, because a valid token or signed link has come on it, or the connection has ended."""
        self._connections.pop(connection, None)


class GuardedConnection(HttpToolsProtocol):
    """A connection whose requests must send their heads in time, and within HEAD_BYTES."""

    def __init__(self, strangers: Strangers, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self.strangers = strangers
        self._head_bytes = 0
        self._in_head = True
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Note the connection, and wait for its first head."""
        super().connection_made(transport)
        self.strangers.add(self)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self.strangers.remove(self)
        self._end_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse data; close the connection if the head of its request is too long."""
        super().data_received(data)
        self._head_bytes += len(data)
        if self._in_head and self._head_bytes > HEAD_BYTES:
            self.transport.abort()

    def on_message_begin(self) -> None:
        """Expect the rest of a request's head."""
        super().on_message_begin()
        self.scope["state"]["connection"] = self
        self._expect_head()

    def on_headers_complete(self) -> None:
        """Let the application have the request."""
        self._end_head()
        super().on_headers_complete()

    def _expect_head(self) -> None:
        self._end_head()
        self._in_head, self._head_bytes = True, 0
        self._deadline = self.loop.call_later(HEAD_S, self.transport.abort)

    def _end_head(self) -> None:
        self._in_head = False
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def admitted(request: Request) -> None:
    """Note that the token, or the signed link, of a request is valid."""
    connection = getattr(request.state, "connection", None)
    if isinstance(connection, GuardedConnection):
        connection.strangers.remove(connection)


def allow_most_files() -> None:
    """Let this process have as many open files, and so connections, as its hard limit allows."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # some systems refuse their own hard limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
