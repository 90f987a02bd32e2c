from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from cloudpar_master.core.events import Event
from cloudpar_master.core.head import Head, Spec
from cloudpar_protocol.payloads import TaskResult

_events: msgspec.msgpack.Decoder[Event] = msgspec.msgpack.Decoder(Event)


class InboxItem(NamedTuple):
    """An event that waits for a fold. `event` is None if it cannot be read: the fold then fails the package."""

    key: str
    event: Event | None

    @classmethod
    def of(cls, key: str, body: bytes) -> "InboxItem":
        """Read an event that an adapter has stored as MessagePack."""
        try:
            return cls(key, _events.decode(body))
        except msgspec.DecodeError:
            return cls(key, None)


class Opened(NamedTuple):
    """A head and the oldest events of its inbox. `more` says that the inbox has further events.

    If another fold consumes an event meanwhile, the event may be in neither of them: this head was read before that
    fold saved its own, and the inbox after that fold deleted the event.
    """

    head: Head
    inbox: list[InboxItem]
    more: bool


class ResultPage(NamedTuple):
    """The results that a version of a head committed."""

    version: int
    results: list[TaskResult]


class Running(NamedTuple):
    """What an account has running: packages, all of their tasks, and the bytes of their task data."""

    packages: int
    tasks: int
    data_bytes: int

    @classmethod
    def of(cls, head: Head) -> "Running":
        """Return the figures of one running package. They must never change: an adapter may store them only once."""
        return cls(packages=1, tasks=head.tasks.count, data_bytes=head.data_bytes)

    @property
    def figures(self) -> dict[str, int]:
        """The figures that adapters store with each package, by name. Without `packages`, since adapters count rows."""
        return {name: getattr(self, name) for name in RUNNING_FIGURES}


RUNNING_FIGURES: Final = Running._fields[1:]


class PackageStore(Protocol):
    """Heads, inboxes and result pages. A read of these sees every write that was answered before it.

    A list of packages (`due`, `uncut`, `of_account`, `running`, `unsettled`) may be a little old.
    """

    def create(self, spec: Spec, head: Head) -> Spec:
        """Write both, once: if the package exists already, nothing changes. Returns the spec that is stored."""
        ...

    def spec(self, package_id: str) -> Spec | None:
        """Return the part that never changes; it may come from a cache."""
        ...

    def load(self, package_id: str) -> Head | None:
        """Return the head as last saved."""
        ...

    def find(self, package_ids: Sequence[str]) -> dict[str, tuple[Head, Spec]]:
        """Return the head and the spec of each of these packages that exists."""
        ...

    def heads(self, package_ids: Sequence[str]) -> list[Head]:
        """Return the heads of those packages that exist, in this order, read together."""
        ...

    def open(self, package_id: str, limit: int) -> Opened | None:
        """Return the head, and the oldest events of its inbox: at most `limit` and about 1 MB."""
        ...

    def save(self, head: Head, due_at: float, results: Sequence[TaskResult] = ()) -> bool:
        """Replace the head if the stored one has the version head.version - 1. Returns False if it has another version.

        The same write stores `due_at`, which is when the timer should fold the package, and a page of the results that
        this version commits, if there are any.
        """
        ...

    def append(self, package_id: str, items: Sequence[tuple[str, Event]]) -> None:
        """Put events into the inbox durably, each under its key. If a key has an event already, that event stays.

        Events of a package that does not exist change nothing.
        """
        ...

    def delete_events(self, package_id: str, keys: Sequence[str]) -> None:
        """Remove events that the fold of a saved head has consumed."""
        ...

    def pages(self, package_id: str, after: int, until: int, limit_bytes: int) -> list[ResultPage]:
        """Return the pages of the versions from `after` + 1 to `until`, in order, up to about `limit_bytes`.

        If there is such a page, at least one is returned.
        """
        ...

    def due(self, now: float, limit: int) -> list[str]:
        """Return packages whose due time has come. Reads only the registry of due times, and no package."""
        ...

    def uncut(self, limit: int) -> list[str]:
        """Return running packages with tasks in no chunk, oldest first. A hint: it may be a little old."""
        ...

    def of_account(self, account_id: str | None, limit: int) -> list[Head]:
        """Return the packages of an account (None: of all), newest first."""
        ...

    def running(self, account_id: str) -> Running:
        """Count what an account has running. A hint: it may be a little old."""
        ...

    def unsettled(self, account_id: str) -> list[Head]:
        """Return an account's packages that run, or are not settled yet. One that has just started may be missing."""
        ...

    def delete_pages(self, package_id: str) -> None:
        """Free the results and the inlined task data; the head stays."""
        ...

    def forget(self, package_id: str) -> None:
        """Remove everything of the package."""
        ...
