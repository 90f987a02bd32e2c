"""Who had which task when, as a journal tells it: what was handed out again, and how soon."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cloudpar_protocol import routes
from cloudpar_protocol.payloads import Range
from system.journal import Entry, Portion


class Rescue(NamedTuple):
    """A task that was handed out while somebody had it already. `late_s`: after his death; None: he lived."""

    package_id: str
    task: int
    late_s: float | None


Task = tuple[str, int]


class Holders:
    """Each task's holder: a worker and its lease, from the hand-out to a result, a return or the end of the lease."""

    def __init__(self, died_s: Mapping[str, float]) -> None:
        self._died_s = died_s
        self._leases: dict[str, str] = {}
        """Worker by lease."""
        self._of: dict[Task, str] = {}
        """Lease by task."""
        self.rescues: list[Rescue] = []

    def take(self, entries: Iterable[Entry]) -> "Holders":
        """Follow a journal."""
        for entry in entries:
            for portion in entry.portions:
                if entry.route == routes.RETRIEVE_TASKS.name:
                    self._hand_out(entry, portion)
                else:
                    self._release(portion)
        return self

    def _hand_out(self, entry: Entry, portion: Portion) -> None:
        if portion.lease_id in self._leases:
            return  # the answer to an attempt that was made again
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
    """The tasks in some ranges."""
    return [index for start, end in ranges for index in range(start, end)]
