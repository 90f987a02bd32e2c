from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from cloudpar_master.core.events import Event
from cloudpar_master.core.head import Head, Spec
from cloudpar_protocol.errors import Gone
from cloudpar_protocol.payloads import TaskResult

_events: msgspec.msgpack.Decoder[Event] = msgspec.msgpack.Decoder(Event)


class Unreadable(Gone):
    """The spec or a result page of a package cannot be read. The error's text names the package to its owner."""


class InboxItem(NamedTuple):
    """An event that waits for a fold. `event` is None if the stored event cannot be read; the package then fails."""

    key: str
    event: Event | None

    @classmethod
    def of(cls, key: str, body: bytes) -> "InboxItem":
        """Make an item of an event that an adapter has stored as MessagePack."""
        try:
            return cls(key, _events.decode(body))
        except ValueError:  # not only a DecodeError: text that is not UTF-8 raises a UnicodeDecodeError
            return cls(key, None)


class Opened(NamedTuple):
    """A head and events of its inbox, oldest first. `more` says whether the inbox has further events.

    The head may be read before the inbox. Between these reads, another process may save a head that has consumed an
    event, and delete the event. Then `head` has not consumed the event, and `inbox` does not have it.
    """

    head: Head
    inbox: list[InboxItem]
    more: bool


class ResultPage(NamedTuple):
    """The results that a version of a head committed."""

    version: int
    results: list[TaskResult]


class Running(NamedTuple):
    """The number of an account's running packages, of all their tasks, and of the bytes of their task data."""

    packages: int
    tasks: int
    data_bytes: int

    @classmethod
    def of(cls, head: Head) -> "Running":
        """Return the numbers of one running package. They must never change: an adapter may store them only once."""
        return cls(packages=1, tasks=head.tasks.count, data_bytes=head.data_bytes)

    @property
    def figures(self) -> dict[str, int]:
        """The numbers that adapters store with each package, by name.

        `packages` is not among them, because adapters find it by counting their rows of packages.
        """
        return {name: getattr(self, name) for name in RUNNING_FIGURES}


class AtWork(NamedTuple):
    """The running packages of all accounts: the heads of some, and the approximate number of the others."""

    heads: list[Head]
    others: int


RUNNING_FIGURES: Final = Running._fields[1:]


class PackageStore(Protocol):
    """Specs, heads, inboxes and result pages.

    A read of a head, an inbox or a page sees every write that had returned before the read started.

    A list of packages (`due`, `uncut`, `of_account`, `running`, `running_heads`, `unsettled`, `at_work`) may be a
    little old.

    If a stored head cannot be read, each call returns `Head.stand_in` in its place, and logs that once in a while.
    Therefore one damaged record does not make calls for other packages fail.
    """

    def create(self, spec: Spec, head: Head) -> Spec:
        """Store the spec and the first head of a package. If the package exists already, nothing changes.

        Returns the spec that is stored: the object `spec` itself if this call has stored it.
        """

    def spec(self, package_id: str) -> Spec | None:
        """Return the spec of a package; None if there is no such package. The spec may come from a cache.

        Raises:
            Unreadable: The stored spec is damaged.
        """

    def load(self, package_id: str) -> Head | None:
        """Return the head as last saved; None if there is no such package."""

    def find(self, package_ids: Sequence[str]) -> dict[str, tuple[Head, Spec | None]]:
        """Return the head and the spec of each of these packages that exists. None stands for a damaged spec."""

    def heads(self, package_ids: Sequence[str]) -> list[Head]:
        """Return the heads of those packages that exist, in the given order."""

    def open(self, package_id: str, limit: int) -> Opened | None:
        """Return the head, and the oldest events of its inbox: at most `limit` events, and about 1 MB.

        If the inbox has more than about 1 MB, the returned events need not be the oldest. A fold deletes the events
        that it has consumed, so that the next call returns the remaining events. Returns None if there is no such
        package.
        """

    def save(self, head: Head, due_at: float, results: Sequence[TaskResult] = ()) -> bool:
        """Replace the head if the stored head has the version head.version - 1. Returns whether it was replaced.

        A stored head with a different start time is not replaced: it belongs to another package that has the same id.

        `due_at` is the time at which the timer should fold the package. The same write stores `due_at` and, if this
        version commits results, a page of these results.
        """

    def append(self, package_id: str, items: Sequence[tuple[str, Event]], born: float | None = None) -> None:
        """Put events into the inbox durably, each under its key. If a key has an event already, that event stays.

        `born` is the start time of the package, if the caller has just read its head: a store may then read less.
        Events for a package that does not exist have no effect.

        Raises:
            TooLarge: An event is larger than this store's records can be.
        """

    def claim(self, package_id: str, now: float, until: float) -> bool:
        """Claim the next fold of a package from `now` to `until`. Returns False if another process has claimed it.

        A claim only saves work: if several processes folded the package at once, only one of them could save its head.
        Folds without a claim are as safe. An earlier claim does not count if, from `now` on, it lasts more than twice
        as long as this one would. Such a claim comes from a process whose clock is ahead, and would keep other
        processes from folding the package for long. Smaller differences between clocks are usual.
        """

    def delete_events(self, package_id: str, keys: Sequence[str]) -> None:
        """Remove events that the fold of a saved head has consumed."""

    def pages(self, package_id: str, after: int, until: int, limit_bytes: int) -> list[ResultPage]:
        """Return the pages of the versions from `after` + 1 to `until`, in order, up to about `limit_bytes`.

        The first of these pages is returned even if it is larger than the limit. If a later page is damaged or missing,
        only the pages before it are returned. An empty list says that the first of these pages is missing.

        Raises:
            Unreadable: The first of these pages is damaged.
        """

    def due(self, now: float, limit: int) -> list[str]:
        """Return packages whose due time has come, the most overdue first. Reads only an index of the due times."""

    def defer(self, package_id: str, now: float, until: float) -> None:
        """Postpone the due time of a package to `until`, if the package is due by `now`. Its head stays as it is.

        Without this call, the packages that this master cannot fold would always be the most overdue ones, and the
        master would never get to the others.
        """

    def uncut(self) -> list[str]:
        """Return all packages whose last saved head was `cuttable`, oldest first. A hint: it may be a little old."""

    def of_account(self, account_id: str | None, limit: int) -> Iterable[Head]:
        """Return the packages of an account (None: of all accounts), newest first, at most `limit`.

        Heads may be decoded while the caller iterates. Meanwhile the caller may also call other methods of the store.
        """

    def running(self, account_id: str) -> Running:
        """Count an account's running packages, their tasks and bytes (Running). A hint: it may be a little old."""

    def stored_bytes(self, account_id: str) -> int:
        """Add up `Head.counted_bytes` of an account's packages. A hint: it may be a little old, or rounded up."""

    def running_heads(self, account_id: str) -> Iterable[Head]:
        """Return an account's running packages. One that has just started, or that cannot be read, may be missing.

        Heads may be decoded while the caller iterates, as with `of_account`. The cost depends on the running packages
        only, whose number is limited: an account may have many more packages that have ended and are not settled yet.
        """

    def unsettled(self, account_id: str) -> Iterable[Head]:
        """Return an account's packages that run, or are not settled yet.

        A package that has just started may be missing. Heads may be decoded while the caller iterates, as with
        `of_account`.
        """

    def at_work(self, limit: int) -> AtWork:
        """Return the running packages of all accounts, with at most `limit` heads. A hint: it may be a little old.

        First comes the oldest package of each account, then the second one of each account, and so on. Otherwise
        accounts with many packages that wait for quota would hide the work of all others.
        """

    def delete_pages(self, package_id: str) -> bool:
        """Remove the result pages, and what `Spec.freed` removes; the head and the rest of the spec stay.

        One call may remove only some of many pages. Returns whether everything is removed now.
        """

    def forget(self, head: Head) -> bool:
        """Remove everything of the package if this head is still stored. Returns whether everything was removed.

        If the stored head is a different one, for example that of a later package with the same id, nothing of that
        package is removed. There is one exception: if another process replaces this head during the call, some records
        of the tombstone's package may be gone already.
        """
