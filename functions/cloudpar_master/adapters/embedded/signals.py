from collections.abc import Sequence
from typing import Protocol

from cloudpar_master.ports import Needs


class Signals(Protocol):
    """What the adapters tell the server of their own process, so that it can hold requests instead of polling."""

    def head_saved(self, package_id: str) -> None:
        """A package has news."""
        ...

    def chunks_sent(self, needs: Sequence[Needs]) -> None:
        """The queue has more: what each of its new messages needs of a worker."""
        ...


class NoSignals:
    """Nobody listens."""

    def head_saved(self, package_id: str) -> None:
        """Ignore it."""

    def chunks_sent(self, needs: Sequence[Needs]) -> None:
        """Ignore it."""
