"""Decides whose tasks run next here: packages take turns by the execution time that their tasks have had.

The master decides which chunks a worker gets (cloudpar_master.core.turns); this module decides in which order they run.
The package whose tasks have had the least execution time is furthest behind, and is next. In both modules, a new
package starts with as much time as the package that is furthest behind.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from .lease_record import LeaseRecord

PATIENCE_US: Final = 200_000
"""How long first tasks of packages may go before all other tasks, in microseconds. If they have done so for longer than
this time, and for longer than one of the other tasks takes, one of the other tasks is next. Without this limit a stream
of small packages could stop a large package.
"""

REMEMBERED: Final = 1_000
"""For how many packages the time is remembered. A further package replaces the package whose last result is the oldest.
The replaced package then counts as new.
"""


class Turns:
    """The execution time that the tasks of each package have had here.

    A new package starts with the time of the package that is furthest behind. This time is called the level.
    """

    def __init__(self) -> None:
        self._level_us = 0
        self._finish_us: dict[str, int] = {}
        self._passed_over_at_us: int | None = None

    def order(
        self,
        ready: Sequence[LeaseRecord],
        running_us: Callable[[str], int],
        task_us: Callable[[LeaseRecord], float],
        now_us: int,
    ) -> list[LeaseRecord]:
        """Return the leases in the order in which their tasks run.

        Args:
            ready: Leases with ready tasks, in the order in which they came.
            running_us: Returns, for a package id, the sum of the times since its running tasks started.
            task_us: Returns the mean duration of a lease's tasks; 0 if unknown.
            now_us: The agent's time.
        """
        packages = dict.fromkeys(record.lease.package_id for record in ready)
        if len(packages) <= 1:
            return list(ready)
        standings = {package_id: self._start_us(package_id) + running_us(package_id) for package_id in packages}
        firsts = [record for record in ready if record.first]
        others = sorted(
            (record for record in ready if not record.first), key=lambda record: standings[record.lease.package_id]
        )
        if not (firsts and others) or self._passed_over_at_us is None:
            return firsts + others
        patience_us = max(PATIENCE_US, task_us(others[0]))
        return others + firsts if now_us - self._passed_over_at_us > patience_us else firsts + others

    def fed(
        self, record: LeaseRecord, ready: Sequence[LeaseRecord], leases: Iterable[LeaseRecord], now_us: int
    ) -> None:
        """Record that an executor gets tasks of a ready lease. Call it before the tasks are taken from the lease.

        `leases` are all leases here. The level (see Turns) rises to the smallest time among the packages that have
        tasks without a result here.
        """
        active = {each.lease.package_id for each in leases if not each.exhausted}
        self._level_us = max(self._level_us, min(map(self._start_us, active)))
        if not record.first or all(each.first for each in ready):
            self._passed_over_at_us = None
        elif self._passed_over_at_us is None:
            self._passed_over_at_us = now_us

    def behind_us(self, package_id: str, other_id: str) -> int:
        """Return the microseconds by which a package is behind the package `other_id`; negative if it is ahead."""
        return self._start_us(other_id) - self._start_us(package_id)

    def ran(self, package_id: str, total_us: int) -> None:
        """Add the execution time of a package's tasks."""
        finish_us = self._start_us(package_id) + total_us
        self._finish_us.pop(package_id, None)
        self._finish_us[package_id] = finish_us
        if len(self._finish_us) > REMEMBERED:
            del self._finish_us[next(iter(self._finish_us))]

    def _start_us(self, package_id: str) -> int:
        return max(self._level_us, self._finish_us.get(package_id, 0))
