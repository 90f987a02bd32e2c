from collections.abc import Sequence

import msgspec

from cloudpar_master.ports import Clock, Fit, WorkerRecord

from .rows import Row
from .table import Table, put, update

WORKERS = "workers"
"""The partition of their rows. No package has this id: those are hexadecimal."""

FRESH_S = 20.0
"""A worker's row is written at most this often while the worker tells nothing new: a write costs money."""

LOOK_S = 5.0
"""What was read is used for so long: all who ask in this time share one call."""

REMEMBERED = 1_000

_encode = msgspec.json.encode
_fits = msgspec.json.Decoder(Fit)


class DynamoWorkerRegistry:
    """The workers as rows of the package table, which the table's time to live removes; so all instances see them.

    Args:
        table: Where the rows are.
        clock: For what this instance remembers.
        kept_s: How long a row is kept after its worker was last heard of.
    """

    def __init__(self, table: Table, clock: Clock, kept_s: float) -> None:
        self._table = table
        self._clock = clock
        self._kept_s = kept_s
        self._written: dict[str, WorkerRecord] = {}
        self._seen: list[WorkerRecord] = []
        self._seen_at = float("-inf")

    def note(self, worker: WorkerRecord) -> None:
        """See the port."""
        known = self._written.get(worker.worker_id)
        if known is None or known._replace(seen_at=0.0) != worker._replace(seen_at=0.0) or self._is_old(worker, known):
            self._remember(worker)
            row: Row = {
                "pk": WORKERS,
                "sk": worker.worker_id,
                "host": worker.host,
                "executors": worker.executors,
                "fit": _encode(worker.fit).decode(),
                **self._times(worker.seen_at),
            }
            self._table.write(put(row, ""))

    def beat(self, worker_id: str, now: float) -> None:
        """See the port. A row that is not there is not made: nothing is known of that worker."""
        known = self._written.get(worker_id, WorkerRecord(worker_id, float("-inf")))
        if self._is_old(known._replace(seen_at=now), known):
            self._remember(known._replace(seen_at=now))
            expression = "SET seen_at = :seen_at, expires_at = :expires_at"
            key = WORKERS, worker_id
            self._table.write(update(key, expression, "attribute_exists(pk)", **self._times(now)))

    def leave(self, worker_id: str) -> None:
        """See the port. A beat does not make a row, and a worker that ends asks for no more chunks."""
        self._written.pop(worker_id, None)
        self._seen = [worker for worker in self._seen if worker.worker_id != worker_id]
        self._table.delete([(WORKERS, worker_id)])

    @staticmethod
    def _is_old(worker: WorkerRecord, known: WorkerRecord) -> bool:
        return abs(worker.seen_at - known.seen_at) >= FRESH_S

    def _remember(self, worker: WorkerRecord) -> None:
        if len(self._written) >= REMEMBERED:
            self._written.clear()
        self._written[worker.worker_id] = worker

    def _times(self, seen_at: float) -> dict[str, float]:
        return {"seen_at": seen_at, "expires_at": int(seen_at + self._kept_s)}

    def workers(self, since: float) -> Sequence[WorkerRecord]:
        """See the port."""
        now = self._clock.now()
        if not 0 <= now - self._seen_at < LOOK_S:
            self._seen = [_record(row) for row in self._table.query("pk = :pk", {"pk": WORKERS})]
            self._seen_at = now
        return [worker for worker in self._seen if worker.seen_at >= since]

    def knows_all(self, now: float) -> bool:
        """See the port. Rows are never lost."""
        del now
        return True


def _record(row: Row) -> WorkerRecord:
    return WorkerRecord(row["sk"], float(row["seen_at"]), row["host"], row["executors"], _fits.decode(row["fit"]))
