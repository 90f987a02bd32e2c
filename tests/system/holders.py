"""Which worker had which task when, according to a journal: what was handed out again, and how soon."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cloudpar_protocol import routes
from cloudpar_protocol.payloads import Range
from system.journal import Entry, Portion


class Rescue(NamedTuple):
    """A task that was handed out while a worker had it. `late_s` is the time since that worker died; None: it lives."""

    package_id: str
    task: int
    late_s: float | None


Task = tuple[str, int]


class Holders:
    """Each task's worker and lease, from the hand-out to a result, a return or the end of the lease."""

    def __init__(self, died_s: Mapping[str, float]) -> None:
        self._died_s = died_s
        self._leases: dict[str, str] = {}
        """Workers by their leases."""
        self._of: dict[Task, str] = {}
        """Leases by their tasks."""
        self.rescues: list[Rescue] = []

    def take(self, entries: Iterable[Entry]) -> "Holders":
        """Add the entries of a journal."""
        for entry in entries:
            for portion in entry.portions:
                if entry.route == routes.RETRIEVE_TASKS.name:
                    self._hand_out(entry, portion)
                else:
                    self._release(portion)
        return self

    def _hand_out(self, entry: Entry, portion: Portion) -> None:
        if portion.lease_id in self._leases:
            return  # the answer to a repeated attempt
        self._leases[portion.lease_id] = entry.worker_id
        for index in numbers(portion.ranges):
            before = self._of.get((portion.package_id, index))
            if before is not None:
                died_s = self._died_s.get(self._leases[before])
                late_s = None if died_s is None or died_s > entry.answered_s else entry.answered_s - died_s
                self.rescues.append(Rescue(portion.package_id, index, late_s))
            self._of[portion.package_id, index] = portion.lease_id

    def _release(self, portion: Portion) -> None:
        gone = [(portion.package_id, index) for index in numbers(portion.ranges)]
        if portion.closes:
            gone = [task for task, lease_id in self._of.items() if lease_id == portion.lease_id]
        for task in gone:
            if self._of.get(task) == portion.lease_id:
                del self._of[task]


def numbers(ranges: Iterable[Range]) -> list[int]:
    """Return the tasks in these ranges."""
    return [index for start, end in ranges for index in range(start, end)]
