from collections.abc import Sequence
from typing import NamedTuple, Protocol

from cloudpar_master.core.events import Event
from cloudpar_master.core.head import Head, Spec
from cloudpar_protocol.payloads import TaskResult


class InboxItem(NamedTuple):
    """An event waiting for a fold. `event` is None when it could not be read (set aside by the fold)."""

    key: str
    event: Event | None


class ResultPage(NamedTuple):
    """The results that a head version committed.

    Writers that lost the race for a version leave pages behind. A page is valid if the head or any later page names
    it: `before` is the (version, nonce) of the page before, or (0, "").
    """

    version: int
    nonce: str
    before: tuple[int, str]
    results: list[TaskResult]


class PackageStore(Protocol):
    """Heads, inboxes and result pages. All reads see every write that was answered before them."""

    def create(self, spec: Spec, head: Head) -> Spec:
        """Write both, once: if the package is there already nothing changes. Returns the spec that is stored."""
        ...

    def spec(self, package_id: str) -> Spec | None:
        """The unchanging part; may come from a cache."""
        ...

    def load(self, package_id: str) -> Head | None:
        """The head as last saved."""
        ...

    def save(self, head: Head, due_at: float) -> bool:
        """Replace the head if the stored one is of version head.version - 1; False if it is not.

        `due_at` enters the registry in the same write: when the timer shall look after the package.
        """
        ...

    def append(self, package_id: str, items: Sequence[tuple[str, Event]]) -> None:
        """Put events into the inbox durably, each under its key; a key that is there already is left as it is.

        Events of a package that is not there lead to nothing.
        """
        ...

    def inbox(self, package_id: str, limit: int) -> list[InboxItem]:
        """The oldest events, at most `limit` and about 1 MB."""
        ...

    def delete_events(self, package_id: str, keys: Sequence[str]) -> None:
        """Remove events that a saved head has taken in."""
        ...

    def put_page(self, package_id: str, page: ResultPage) -> None:
        """Store results durably, before the head that names them."""
        ...

    def pages(self, package_id: str, after: int, until: int, limit_bytes: int) -> list[ResultPage]:
        """Pages of versions in (after, until], ascending: at least two if there are two, then about `limit_bytes`."""
        ...

    def due(self, now: float, limit: int) -> list[str]:
        """Packages whose due time has come. Reads the registry only, never the table."""
        ...

    def uncut(self, limit: int) -> list[str]:
        """Running packages with tasks in no chunk, oldest first. A hint: may be a little old."""
        ...

    def of_account(self, account_id: str | None, limit: int) -> list[Head]:
        """The packages of an account (None: of all), newest first."""
        ...

    def delete_pages(self, package_id: str) -> None:
        """Free the results and the inlined task data; the head stays."""
        ...

    def forget(self, package_id: str) -> None:
        """Remove everything of the package."""
        ...
