import logging
from collections.abc import Sequence

import msgspec

from cloudpar_master.core.recent import Recent
from cloudpar_master.ports import Clock, Fit, WorkerRecord, WorkerRegistry

from .rows import Row
from .table import THERE, Table, put, update

WORKERS = "workers"
"""The partition key of the workers' rows. No package has this id, because package ids have 32 characters."""

NOT_LEFT = "attribute_not_exists(#left)"

FRESH_S = 90.0
"""While a worker reports nothing new, each instance of a Lambda function writes the worker's row at most once in this
many seconds: a write costs money."""

LOOK_S = 5.0
"""Seconds for which an instance of a Lambda function uses the rows that it has read, so that it does not read them for
each request. Only a call of `workers` with `newest` reads the rows earlier."""

REMEMBERED = 1_000
"""How many workers one instance remembers. When a forgotten worker reports again, the instance writes the worker's row
again."""

_encode = msgspec.json.encode
_fits = msgspec.json.Decoder(Fit)
_refused = msgspec.json.Decoder(tuple[str, ...])

log = logging.getLogger("cloudpar_master")


class DynamoWorkerRegistry(WorkerRegistry):
    """The workers as rows of the package table, so that all instances of the Lambda functions see them.

    DynamoDB removes a row some time after its `expires_at`.

    Args:
        table: The table with the rows.
        clock: Tells when the rows that this instance has read are too old.
        kept_s: After a write, a row is kept for at least this many seconds.
    """

    def __init__(self, table: Table, clock: Clock, kept_s: float) -> None:
        self._table = table
        self._clock = clock
        self._kept_s = kept_s
        self._written = Recent[str, WorkerRecord](REMEMBERED)
        """The rows as this instance wrote them last."""
        self._noted = Recent[str, WorkerRecord](REMEMBERED)
        """What workers last reported to this instance. Beats are not included: a beat reports only that its worker
        lives."""
        self._seen: dict[str, WorkerRecord] = {}
        self._seen_at = float("-inf")

    def note(self, worker: WorkerRecord) -> None:
        self._noted[worker.worker_id] = worker
        known = self._written.get(worker.worker_id)
        if (
            known is None
            or _differ(known, worker)
            or self._is_old(worker, known)
            or self._is_overwritten(worker, known)
        ):
            self._written[worker.worker_id] = worker
            row = self._row(worker)
            if self._table.write(put(row, NOT_LEFT)) is not None:
                self._forget(worker.worker_id)

    def beat(self, worker_id: str, now: float) -> None:
        """See the port. A beat creates no row, since a beat does not describe its worker."""
        known = self._written.get(worker_id, WorkerRecord(worker_id, float("-inf")))
        if self._is_old(known._replace(seen_at=now), known):
            self._written[worker_id] = known._replace(seen_at=now)
            expression = "SET seen_at = :seen_at, expires_at = :expires_at"
            key = WORKERS, worker_id
            refusal = self._table.write(update(key, expression, f"{THERE} AND {NOT_LEFT}", **self._times(now)))
            if refusal is None and worker_id in self._seen:
                self._seen[worker_id] = self._seen[worker_id]._replace(seen_at=now)

    def leave(self, worker_id: str) -> None:
        """See the port.

        The row then says that the worker has left, so that no instance changes the row because of the worker's late
        requests. The row's `seen_at` is 0, which is older than any report. Therefore an earlier release, which does not
        know such rows, ignores the row, too.
        """
        self._forget(worker_id)
        gone = WorkerRecord(worker_id, 0.0)
        row = self._row(gone) | {"left": 1, "expires_at": int(self._clock.now() + self._kept_s)}
        self._table.write(put(row))

    def _forget(self, worker_id: str) -> None:
        for known in (self._written, self._noted, self._seen):
            known.pop(worker_id, None)

    @staticmethod
    def _is_old(worker: WorkerRecord, known: WorkerRecord) -> bool:
        return abs(worker.seen_at - known.seen_at) >= FRESH_S

    def _is_overwritten(self, worker: WorkerRecord, known: WorkerRecord) -> bool:
        """Whether another instance has written a different report since this instance wrote the row.

        A worker may send report A to this instance, report B to another instance, and report A here again. The row then
        still has B, and without this check all other instances would rely on B until the row is old.
        """
        row = self._seen.get(worker.worker_id)
        return row is not None and row.seen_at > known.seen_at and _differ(row, worker)

    def _row(self, worker: WorkerRecord) -> Row:
        return {
            "pk": WORKERS,
            "sk": worker.worker_id,
            "host": worker.host,
            "executors": worker.executors,
            "fit": _encode(worker.fit[:2]).decode(),  # earlier releases know only these fields of a Fit
            "refuses": _encode(worker.fit.refuses).decode() if worker.fit.refuses else None,
            **self._times(worker.seen_at),
        }

    def _times(self, seen_at: float) -> dict[str, float]:
        return {"seen_at": seen_at, "expires_at": int(seen_at + self._kept_s)}

    def workers(self, since: float, *, newest: bool = False) -> Sequence[WorkerRecord]:
        """See the port. If this instance has a report that is newer than the worker's row, it returns this report."""
        now = self._clock.now()
        if newest or not 0 <= now - self._seen_at < LOOK_S:
            rows = map(_record, self._table.query("pk = :pk", {"pk": WORKERS}))
            self._seen = {worker.worker_id: worker for worker in rows if worker and worker.seen_at}
            self._seen_at = now
            # Each noted worker has had a row. If the row is missing, or says that the worker left, the worker has
            # ended.
            for name in self._noted.keys() - self._seen.keys():
                del self._noted[name]
        known = self._seen | {name: worker for name, worker in self._noted.items() if self._is_news(worker)}
        return [worker for worker in known.values() if worker.seen_at >= since]

    def _is_news(self, noted: WorkerRecord) -> bool:
        row = self._seen.get(noted.worker_id)
        return row is None or noted.seen_at > row.seen_at

    def knows_all(self, now: float) -> bool:
        """See the port. Rows are never lost."""
        del now
        return True


def _differ(one: WorkerRecord, other: WorkerRecord) -> bool:
    return one._replace(seen_at=0.0) != other._replace(seen_at=0.0)


def _record(row: Row) -> WorkerRecord | None:
    try:
        fit = _fits.decode(row["fit"])._replace(refuses=_refused.decode(row.get("refuses", "[]")))
    except ValueError as error:
        # Ignore the worker until it reports again. Otherwise one row would make the call fail for all workers.
        log.warning("the row of worker %s cannot be read (%s)", row["sk"], error)
        return None
    return WorkerRecord(row["sk"], float(row["seen_at"]), row["host"], row["executors"], fit)
