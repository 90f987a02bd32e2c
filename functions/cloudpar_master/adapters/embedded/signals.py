from typing import Protocol


class Signals(Protocol):
    """What the adapters tell the server of their own process, so that it can hold requests instead of polling."""

    def head_saved(self, package_id: str) -> None:
        """A package has news."""
        ...

    def chunks_sent(self, count: int) -> None:
        """The queue has more."""
        ...


class NoSignals:
    """Nobody listens."""

    def head_saved(self, package_id: str) -> None:
        """Ignore it."""

    def chunks_sent(self, count: int) -> None:
        """Ignore it."""
