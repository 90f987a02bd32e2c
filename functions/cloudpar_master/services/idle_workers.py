from collections.abc import Sequence
from typing import NamedTuple

from cloudpar_master.core.head import Head
from cloudpar_master.ports import Fit

from .placement import runs


class _Idle(NamedTuple):
    at: float
    fit: Fit


class IdleWorkers:
    """Remembers which workers got no chunks in the last MEMORY_S seconds.

    It knows only the retrievals that came to this process.
    """

    MEMORY_S = 30.0

    def __init__(self) -> None:
        self._since: dict[str, _Idle] = {}

    def note(self, worker_id: str, now: float, fit: Fit, *, idle: bool) -> None:
        """Record a worker's retrieval. A worker whose retrieval brought no chunk is idle."""
        self._since = {name: each for name, each in self._since.items() if now - each.at < self.MEMORY_S}
        self._since.pop(worker_id, None)
        if idle:
            self._since[worker_id] = _Idle(now, fit)

    def left(self, worker_id: str) -> None:
        """Forget a worker that has ended, so that other workers give nothing back for it."""
        self._since.pop(worker_id, None)

    def count(self, now: float) -> int:
        """Count the idle workers."""
        return sum(1 for each in self._since.values() if now - each.at < self.MEMORY_S)

    def other(self, worker_id: str, now: float, heads: Sequence[Head]) -> Fit | None:
        """Find an idle worker other than this one that can run one of these packages, and return what it can take.

        Of several such workers, the one that sent its retrieval last is chosen. Returns None if there is no such
        worker.
        """
        idle = [each.fit for name, each in self._since.items() if name != worker_id and now - each.at < self.MEMORY_S]
        return next((fit for fit in reversed(idle) if any(runs(fit, head) for head in heads)), None)
