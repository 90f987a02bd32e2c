"""Limits the connections, and the memory for bodies, that one account may use at the same time."""

import resource
from collections import defaultdict
from contextlib import suppress
from typing import Final, Protocol, TypeVar

from cloudpar_protocol.errors import RateLimited

T = TypeVar("T")

CONNECTIONS: Final = 1_024
"""How many connections an account may have, if the process may open enough files; see `most_connections`."""

BODIES_BYTES: Final = 64 * 1024 * 1024
"""How many bytes of bodies and answers of an account's calls the server may hold at a time. Beyond that, it answers
further calls with 429."""

RETRY_S: Final = 1.0
"""If the server refuses a call with 429, because the account has reached one of these limits, the client tries again
after this many seconds."""


class Connection(Protocol):
    """The methods of a connection that `Shares` calls."""

    def close(self) -> None:
        """Close this connection, which is idle."""

    def give_way(self) -> None:
        """Answer the request that the server holds on this connection, and close the connection."""


class Shares:
    """Counts the connections of each account, and the bytes in memory for the calls on them.

    Workers and operators have no account, so they have no limit: the operator owns their tokens.

    Args:
        connections: How many connections each account may have.
        bodies_bytes: How many bytes of bodies and answers the calls of each account may hold at a time.
    """

    def __init__(self, connections: int = CONNECTIONS, bodies_bytes: int = BODIES_BYTES) -> None:
        self._most, self._most_bytes = connections, bodies_bytes
        self._accounts: dict[Connection, str] = {}
        self._numbers: dict[str, int] = {}
        self._idle = defaultdict[str, dict[Connection, None]](dict)  # by account, the one that is idle longest first
        self._holding = defaultdict[str, dict[Connection, None]](dict)
        self._held: dict[Connection, int] = {}
        self._held_by_account: dict[str, int] = {}

    def enter(self, connection: Connection, account: str) -> None:
        """Count a connection for an account; if `account` is "", count the connection for none.

        If the account has too many connections, close the connection that has been idle for longest. If none is idle,
        end the request that is held for longest: otherwise clients that wait for results would shut out all other
        clients of their account.

        Raises:
            RateLimited: The account has too many connections, and the server works on a request on each of them.
        """
        before = self._accounts.get(connection, "")
        if account == before:
            return
        if account and self._numbers.get(account, 0) >= self._most:
            self._make_room(account)
        self.leave(connection)
        if account:
            self._accounts[connection] = account
            self._numbers[account] = self._numbers.get(account, 0) + 1

    def leave(self, connection: Connection) -> None:
        """Stop counting a connection, and the bytes that it holds, for its account."""
        self.start(connection)
        self.hold(connection, 0)
        account = self._accounts.pop(connection, "")
        if account:
            _note(self._numbers, account, self._numbers[account] - 1)

    def rest(self, connection: Connection, *, holds: bool = False) -> None:
        """Record that a connection is idle or, if `holds`, that its request is held until there is news."""
        account = self._accounts.get(connection, "")
        if account:
            (self._holding if holds else self._idle)[account][connection] = None

    def start(self, connection: Connection) -> None:
        """Record that a connection is not idle any more, and that no request is held on it any more."""
        account = self._accounts.get(connection, "")
        for resting in (self._idle, self._holding):
            own = resting.get(account, {})
            own.pop(connection, None)
            if not own:
                resting.pop(account, None)

    def hold(self, connection: Connection, size: int) -> None:
        """Count this many bytes for a connection's call, instead of the bytes that were counted before.

        Raises:
            RateLimited: The account's connections would hold too many bytes.
        """
        account = self._accounts.get(connection, "")
        if not account:
            return
        before = self._held.get(connection, 0)
        held = self._held_by_account.get(account, 0) - before + size
        if held > self._most_bytes and size > before:
            raise RateLimited(
                f"the calls of this account that are under way have bodies of {self._most_bytes:,} bytes already: "
                "wait as long as the answer says, or send fewer calls at a time",
                RETRY_S,
            )
        _note(self._held, connection, size)
        _note(self._held_by_account, account, held)

    def _make_room(self, account: str) -> None:
        for resting in (self._idle, self._holding):
            found = next(iter(resting.get(account, ())), None)
            if found is not None:
                self.leave(found)
                found.close() if resting is self._idle else found.give_way()
                return
        raise RateLimited(
            f"this account has {self._most:,} connections, and the master works on a request of each: wait as long as "
            "the answer says, or use fewer clients",
            RETRY_S,
        )


def _note(counts: dict[T, int], name: T, count: int) -> None:
    # If zeros were stored, these dictionaries would remember every connection and every account there ever was.
    if count:
        counts[name] = count
    else:
        counts.pop(name, None)


def most_connections() -> int:
    """Return how many connections an account may have: CONNECTIONS, or an eighth of the file limit if that is less."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return CONNECTIONS if files == resource.RLIM_INFINITY else min(CONNECTIONS, files // 8)


def allow_most_files() -> None:
    """Let this process have as many open files, and so connections, as its hard limit allows."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # some systems refuse their own hard limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
