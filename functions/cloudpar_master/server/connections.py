"""Closes surplus connections: the oldest without a valid token, and those beyond an account's limit."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from starlette.requests import Request

from .account_shares import Shares
from .bounded_connection import BoundedConnection

STRANGERS: Final = 256
"""How many connections may be open at a time on which no valid token has come yet."""


class Strangers:
    """The connections on which no valid token has come yet.

    If there are over `most` of them, the oldest ones are closed: first those that have sent no whole head of a request,
    then those whose request waits for its turn. So connections without a token shut out no client that has a token,
    because such a client sends its token at once.
    """

    def __init__(self, most: int = STRANGERS) -> None:
        self._most = most
        self._silent: dict[GuardedConnection, None] = {}  # the oldest first, as in `_asking`
        self._asking: dict[GuardedConnection, None] = {}
        self._closing = False

    def __contains__(self, connection: "GuardedConnection") -> bool:
        return connection in self._silent or connection in self._asking

    def add(self, connection: "GuardedConnection") -> None:
        """Add a new connection, and soon close those that are too many."""
        self._silent[connection] = None
        if self._too_many and not self._closing:
            self._closing = True
            # The server accepts many connections before it reads from any of them. Without this delay of two turns of
            # the event loop, it would close some before it has read the tokens that they have sent.
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_soon, self._close_oldest)

    def ask(self, connection: "GuardedConnection") -> None:
        """Record that the head of a request has come on a connection."""
        if connection in self._silent:
            del self._silent[connection]
            self._asking[connection] = None

    def rest(self, connection: "GuardedConnection") -> None:
        """Record that the request of a connection is answered."""
        if connection in self._asking:
            del self._asking[connection]
            self._silent[connection] = None

    def remove(self, connection: "GuardedConnection") -> None:
        """Remove a connection, because a valid token or signed link has come on it, or the connection has ended."""
        self._silent.pop(connection, None)
        self._asking.pop(connection, None)

    @property
    def _too_many(self) -> bool:
        return len(self._silent) + len(self._asking) > self._most

    def _close_oldest(self) -> None:
        self._closing = False
        while self._too_many:
            oldest = next(iter(self._silent or self._asking))
            self.remove(oldest)
            oldest.transport.abort()


class GuardedConnection(BoundedConnection):
    """A connection that counts as a stranger's until a valid token comes on it, and then for the token's account.

    uvicorn calls these methods, except `admit`, `close` and `give_way`.
    """

    def __init__(self, strangers: Strangers, shares: Shares, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self.strangers = strangers
        self.shares = shares
        self._application, self.app = self.app, self._perform  # uvicorn calls `app`
        self._tasks = 0
        self._strangers_task: asyncio.Task[None] | None = None
        self._lost = False
        self.gave_way = False

    def close(self) -> None:
        """Close this idle connection. A request that is just arriving is lost, as if it had come a moment later."""
        self.transport.close()

    def give_way(self) -> None:
        """Make the application see a disconnect. The application answers, and the connection closes."""
        self.gave_way = True
        self.cycle.keep_alive = False
        self.cycle.disconnected = True
        self.cycle.message_event.set()

    def admit(self, account: str) -> None:
        """Record that a valid token of an account has come. Raises like `Shares.enter`."""
        self.shares.enter(self, account)
        self.strangers.remove(self)
        self._strangers_task = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Add the connection to those of strangers."""
        super().connection_made(transport)
        self.strangers.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection, unless the application still works for it."""
        self._lost = True
        self.strangers.remove(self)
        if self._strangers_task is not None:
            # The request may wait for its turn. Without this line, requests whose clients have hung up would fill the
            # memory, because clients can connect faster than these requests get their turns.
            self._strangers_task.cancel()
        super().connection_lost(exc)
        self._settle()

    def on_message_begin(self) -> None:
        """Store this connection where the application finds it."""
        super().on_message_begin()
        self.scope["state"]["connection"] = self

    def on_headers_complete(self) -> None:
        """Record that a request has come."""
        super().on_headers_complete()
        self.strangers.ask(self)

    def resume_writing(self) -> None:
        """Record that the client has read all that was sent."""
        super().resume_writing()
        self._settle()

    async def _perform(self, scope: Any, receive: Any, send: Any) -> None:
        async def receive_one() -> Any:
            message = await receive()
            if message["type"] == "http.request":
                self.flow.pause_reading()  # `receive` has resumed reading: stop again, until its next call
            elif self.gave_way and not self._lost:
                self.cycle.disconnected = False  # so that the answer is sent
            return message

        self._tasks += 1
        self.shares.start(self)
        task = self._strangers_task = asyncio.current_task() if self in self.strangers else None
        try:
            await self._application(scope, receive_one, send)
        except asyncio.CancelledError:
            if not self._lost:  # otherwise `connection_lost` has cancelled this request
                raise
        finally:
            self._tasks -= 1
            if self._strangers_task is task:
                self._strangers_task = None
                self.strangers.rest(self)
            self._settle()

    def _settle(self) -> None:
        """If no request is left, stop counting the memory of this connection and, after its end, the connection.

        A request whose client has hung up still counts until the application has ended it: otherwise a client could
        send requests and hang up, again and again, faster than the master ends them.
        """
        if not self._tasks and self._lost:
            self.shares.leave(self)
        elif not self._tasks and not self.flow.write_paused:
            self.shares.hold(self, 0)
            self.shares.rest(self)


def admitted(request: Request, account: str = "", *, by_link: bool = False) -> None:
    """Record that the token, or the signed link, of a request is valid.

    Args:
        request: The request.
        account: The id of the account for which the connection counts from now on; "" for workers and operators.
        by_link: Whether the request has a link and no token. On a connection on which a token has come, a link changes
            nothing: payloads of many accounts pass through a worker's connection.

    Raises:
        RateLimited: The account has too many connections.
    """
    connection = _connection(request)
    if connection is not None and not (by_link and connection not in connection.strangers):
        connection.admit(account)


def hold(request: Request, size: int) -> None:
    """Count this many bytes for the body and the answer of a request, until the client has read the answer.

    Raises:
        RateLimited: The calls of the account hold too many bytes.
    """
    connection = _connection(request)
    if connection is not None:
        connection.shares.hold(connection, size)


@contextmanager
def holding(request: Request) -> Iterator[Callable[[], bool]]:
    """Mark a request as held, so that the server may end it if its account has too many connections.

    Yields a function that returns whether the server has ended the request for this reason. If so, the application
    reads a disconnect, as if the client had hung up. It must send an answer nevertheless, because the client still
    waits.
    """
    connection = _connection(request)
    if connection is None:
        yield lambda: False
        return
    connection.shares.rest(connection, holds=True)
    try:
        yield lambda: connection.gave_way
    finally:
        connection.shares.start(connection)


async def sent(request: Request) -> None:
    """Wait until the client has read what was sent on this connection, or has hung up."""
    connection = _connection(request)
    if connection is not None and connection.flow.write_paused:
        await connection.flow.drain()


def abort(request: Request) -> None:
    """Close the connection of a request whose answer cannot be completed, so that the client notices."""
    connection = _connection(request)
    if connection is not None:
        connection.cycle.disconnected = True  # otherwise uvicorn logs a traceback about the length of the answer
        connection.transport.abort()


def _connection(request: Request) -> GuardedConnection | None:
    """Return the connection of a request; None if the request came to the application without a server."""
    found: GuardedConnection | None = request.scope.get("state", {}).get("connection")
    return found
