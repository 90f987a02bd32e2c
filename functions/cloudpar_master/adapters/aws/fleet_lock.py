from typing import Final

import msgspec

from cloudpar_master.core.shortage import NO_SHORTAGE, Shortage
from cloudpar_master.ports import Clock, Ids

from .table import Table, update

KEY: Final = ("fleet", "turn")
"""The key of the lock's row in the packages' table. No package has the id "fleet", because package ids have 32
characters."""

HELD_S: Final = 60.0
"""Seconds after which the lock of a process that has died is free again. No invocation of a Lambda function lasts as
long."""

FREE: Final = "(attribute_not_exists(held_until) OR held_until < :now)"
NOT_PAUSED: Final = "(attribute_not_exists(resumes_at) OR resumes_at <= :now)"


class FleetLock:
    """A lock that at most one process of the Lambda functions holds, for at most HELD_S seconds.

    The row of the lock also contains the fleet's shortage. So each process sees the shortage that another process has
    noted, and the write that takes the lock fails if the fleet must not grow now.

    Args:
        table: The table with the row of the lock.
        clock: Tells when HELD_S are over.
        ids: Makes a name each time that the lock is taken, so that a process releases only its own lock.
        kept_s: After a write, the row is kept for at least this many seconds.
    """

    def __init__(self, table: Table, clock: Clock, ids: Ids, kept_s: float) -> None:
        self._table = table
        self._clock = clock
        self._ids = ids
        self._kept_s = kept_s
        self._name = ""

    def take(self) -> bool:
        """Take the lock, unless another process holds it or the fleet must not grow now.

        Returns whether this process holds the lock now.
        """
        now, self._name = self._clock.now(), self._ids.fresh()
        # This write updates the row, because a new row would lose the shortage.
        taken = update(
            KEY, "SET holder = :name, held_until = :until, expires_at = :expires_at", f"{FREE} AND {NOT_PAUSED}",
            name=self._name, until=now + HELD_S, now=now, expires_at=self._expires_at(now),
        )  # fmt: skip
        return self._table.write(taken) is None

    def release(self) -> None:
        """Release the lock. If this process does not hold it any more, do nothing."""
        self._table.write(update(KEY, "SET held_until = :none", "holder = :name", none=0, name=self._name))

    def shortage(self) -> Shortage:
        """Return the shortage that was noted last. If none was noted, return NO_SHORTAGE."""
        row = self._table.get(*KEY)
        text = row.get("shortage") if row else None
        return msgspec.json.decode(text, type=Shortage) if text else NO_SHORTAGE

    def note(self, shortage: Shortage) -> None:
        """Store a shortage. Until it says that the fleet may grow again, no process can take the lock."""
        text = msgspec.json.encode(shortage).decode()
        noted = update(
            KEY, "SET shortage = :text, resumes_at = :resumes_at, expires_at = :expires_at", "",
            text=text, resumes_at=shortage.resumes_at, expires_at=self._expires_at(self._clock.now()),
        )  # fmt: skip
        self._table.write(noted)

    def _expires_at(self, now: float) -> int:
        return int(now + self._kept_s)
