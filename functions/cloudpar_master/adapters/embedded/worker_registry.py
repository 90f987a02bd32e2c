from collections.abc import Sequence

from cloudpar_master.core.recent import Recent
from cloudpar_master.ports import WorkerRecord, WorkerRegistry

RETURN_S = 5.0
"""Seconds after a restart of the master within which every live worker is expected to send a retrieval."""

LEFT = 1_000
"""How many workers that have ended are remembered, so that their late requests do not register them again."""


class MemoryWorkerRegistry(WorkerRegistry):
    """The workers that reported to this process, for a master that is one process.

    Args:
        forgot_at: The time when this process started, if an earlier process used the data folder: this process does not
            know the workers that reported to the earlier one. None if this is the first process of the data folder.
    """

    def __init__(self, forgot_at: float | None = None) -> None:
        self._forgot_at = forgot_at
        self._workers: dict[str, WorkerRecord] = {}
        self._left = Recent[str, None](LEFT)

    def note(self, worker: WorkerRecord) -> None:
        if worker.worker_id not in self._left:  # a late request of a worker must not register it again
            self._workers[worker.worker_id] = worker

    def beat(self, worker_id: str, now: float) -> None:
        """See the port. A beat also registers a worker that this process does not know.

        Such a worker reported to an earlier process, or was silent for a long time. Until its next report, it counts as
        a worker that can run every package.
        """
        if worker_id in self._left:
            return
        known = self._workers.get(worker_id, WorkerRecord(worker_id, now, executors=0))
        self._workers[worker_id] = known._replace(seen_at=now)

    def leave(self, worker_id: str) -> None:
        self._workers.pop(worker_id, None)
        self._left[worker_id] = None

    def workers(self, since: float, *, newest: bool = False) -> Sequence[WorkerRecord]:
        """See the port. This call also forgets the workers that it does not return."""
        del newest  # all workers report to this process, so that no report is missing
        self._workers = {name: worker for name, worker in self._workers.items() if worker.seen_at >= since}
        return list(self._workers.values())

    def knows_all(self, now: float) -> bool:
        return self._forgot_at is None or now - self._forgot_at >= RETURN_S
