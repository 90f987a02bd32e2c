from collections.abc import Sequence
from typing import Protocol

from cloudpar_master.ports import Needs


class Signals(Protocol):
    """What the adapters report to the server of their process, so that it can hold requests instead of polling."""

    def head_saved(self, package_id: str) -> None:
        """Report that a head was saved: its package has news."""
        ...

    def chunks_sent(self, needs: Sequence[Needs]) -> None:
        """Report that messages were sent; `needs` says what each of them needs of a worker."""
        ...
