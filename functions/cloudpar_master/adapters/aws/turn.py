from typing import Final

from cloudpar_master.ports import Clock, Ids

from .table import Table, put, update

KEY: Final = ("fleet", "turn")
"""The key of the row. No package has this id, because package ids have 32 characters."""

TURN_S: Final = 60.0
"""Seconds after which the lock of a process that has died is free again. No call of a function lasts as long."""


class Turn:
    """A lock that at most one process of the Lambda functions holds, for TURN_S at most.

    Args:
        table: The table with the row of the lock.
        clock: Tells when TURN_S are over.
        ids: Makes a name each time that the lock is taken, so that a process releases only its own lock.
        kept_s: The seconds after a write for which the row is kept at least.
    """

    def __init__(self, table: Table, clock: Clock, ids: Ids, kept_s: float) -> None:
        self._table = table
        self._clock = clock
        self._ids = ids
        self._kept_s = kept_s
        self._name = ""

    def take(self) -> bool:
        """Take the lock, unless another process holds it. Returns whether this process holds the lock now."""
        now, self._name = self._clock.now(), self._ids.fresh()
        row = {
            "pk": KEY[0], "sk": KEY[1], "holder": self._name, "held_until": now + TURN_S,
            "expires_at": int(now + self._kept_s),
        }  # fmt: skip
        return self._table.write(put(row, "attribute_not_exists(pk) OR held_until < :now", now=now)) is None

    def release(self) -> None:
        """Release the lock. If this process does not hold it any more, do nothing."""
        self._table.write(update(KEY, "SET held_until = :none", "holder = :name", none=0, name=self._name))
