"""Whose tasks run next here: packages take turns by the time that their tasks have taken.

The master decides what a worker has (cloudpar_master.core.turns); this decides in which order it runs. In both, a
package that comes new starts level with the one that is furthest behind.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from .lease_record import LeaseRecord

PATIENCE_US: Final = 200_000
"""The first task of a package goes before all others. But once others have been passed over for this long, and for as
long as one of their tasks takes, one of theirs is next: a stream of small packages stops no long one."""

REMEMBERED: Final = 1_000
"""Packages whose time is remembered. A forgotten one starts level with the others."""


class Turns:
    """The time that tasks have taken, by package, as far as it is more than what the last package had."""

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
        """Leases as their tasks are to run.

        Args:
            ready: Leases with ready tasks, in the order in which they came.
            running_us: How long the tasks of a package that run now have been running, all together.
            task_us: How long a task of a lease takes; 0: unknown.
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
        """Tasks of one of the ready leases go to an executor. To be called before they are taken from it.

        `leases` are all that are here: the level is that of the package of theirs that is furthest behind.
        """
        active = {each.lease.package_id for each in leases if not each.exhausted}
        self._level_us = max(self._level_us, min(map(self._start_us, active)))
        if not record.first or all(each.first for each in ready):
            self._passed_over_at_us = None
        elif self._passed_over_at_us is None:
            self._passed_over_at_us = now_us

    def behind_us(self, package_id: str, other_id: str) -> int:
        """How much less time a package has had than another one."""
        return self._start_us(other_id) - self._start_us(package_id)

    def ran(self, package_id: str, total_us: int) -> None:
        """Tasks of a package took so long together."""
        finish_us = self._start_us(package_id) + total_us
        self._finish_us.pop(package_id, None)
        self._finish_us[package_id] = finish_us
        if len(self._finish_us) > REMEMBERED:
            del self._finish_us[next(iter(self._finish_us))]

    def _start_us(self, package_id: str) -> int:
        return max(self._level_us, self._finish_us.get(package_id, 0))
