from typing import Final

from cloudpar_master.ports import Clock, Ids

from .table import Table, put, update

KEY: Final = ("fleet", "turn")
"""The key of the row. No package has this id, because package ids have 32 characters."""

TURN_S: Final = 60.0
"""Seconds after which the turn of a process that has died ends. No call of a function lasts as long."""


class Turn:
    """Lets one process at a time do something, among all instances of the Lambda functions.

    Args:
        table: Where the row is that names the process whose turn it is.
        clock: Tells when a turn is over.
        ids: Makes a name for each turn, so that a process ends no other one's.
        kept_s: Seconds for which the row is kept, at least, after it was written.
    """

    def __init__(self, table: Table, clock: Clock, ids: Ids, kept_s: float) -> None:
        self._table = table
        self._clock = clock
        self._ids = ids
        self._kept_s = kept_s
        self._name = ""

    def take(self) -> bool:
        """Begin a turn, unless another process has one. Returns whether this process has it now."""
        now, self._name = self._clock.now(), self._ids.fresh()
        row = {
            "pk": KEY[0], "sk": KEY[1], "holder": self._name, "held_until": now + TURN_S,
            "expires_at": int(now + self._kept_s),
        }  # fmt: skip
        return self._table.write(put(row, "attribute_not_exists(pk) OR held_until < :now", now=now)) is None

    def release(self) -> None:
        """End this process's turn. If the turn is over already, do nothing."""
        self._table.write(update(KEY, "SET held_until = :none", "holder = :name", none=0, name=self._name))
