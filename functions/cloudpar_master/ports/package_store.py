from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from cloudpar_master.core.events import Event
from cloudpar_master.core.head import Head, Spec
from cloudpar_protocol.payloads import TaskResult


class InboxItem(NamedTuple):
    """An event that waits for a fold. `event` is None if it cannot be read: the fold then fails the package."""

    key: str
    event: Event | None


class Opened(NamedTuple):
    """A head and the oldest events of its inbox; `more`: there are others behind them.

    An event that another fold takes in the meantime may be in neither: this head was read before that fold saved its
    own, and the inbox afterwards.
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
        """What one package counts for while it runs. It must never change, since adapters store it only once."""
        return cls(packages=1, tasks=head.tasks.count, data_bytes=head.data_bytes)

    @property
    def figures(self) -> dict[str, int]:
        """What adapters store of a package, by RUNNING_FIGURES. They count packages by their rows."""
        return {name: getattr(self, name) for name in RUNNING_FIGURES}


RUNNING_FIGURES: Final = Running._fields[1:]


class PackageStore(Protocol):
    """Heads, inboxes and result pages. All reads see every write that was answered before them."""

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
        """Return head and spec of those packages that exist."""
        ...

    def heads(self, package_ids: Sequence[str]) -> list[Head]:
        """Return the heads of those packages that exist, in this order, read together."""
        ...

    def open(self, package_id: str, limit: int) -> Opened | None:
        """Return the head, and the oldest events of its inbox: at most `limit` and about 1 MB."""
        ...

    def save(self, head: Head, due_at: float, results: Sequence[TaskResult] = ()) -> bool:
        """Replace the head if the stored one has the version head.version - 1; False if it has not.

        The same write stores `due_at`, which is when the timer should fold the package, and a page of the results that
        this version commits, if there are any.
        """
        ...

    def append(self, package_id: str, items: Sequence[tuple[str, Event]]) -> None:
        """Put events into the inbox durably, each under its key. An event that has its key already stays as it is.

        Events of a package that does not exist change nothing.
        """
        ...

    def delete_events(self, package_id: str, keys: Sequence[str]) -> None:
        """Remove events that a saved head has taken in."""
        ...

    def pages(self, package_id: str, after: int, until: int, limit_bytes: int) -> list[ResultPage]:
        """Return pages of versions in (after, until], ascending: at least one if there is one, about `limit_bytes`."""
        ...

    def due(self, now: float, limit: int) -> list[str]:
        """Return packages whose due time has come. Reads the registry only, never the table."""
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
