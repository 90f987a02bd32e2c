from bisect import bisect_right
from collections.abc import Iterable

from cloudpar_master.core.recent import Recent

REMEMBERED = 1_000
"""For how many workers the process remembers which package was chosen last. For other workers, the choice starts behind
the last package of the most recent choice for any worker."""


class RoundRobin:
    """Chooses which packages a worker's request checks. If there are too many, each request checks other ones."""

    def __init__(self) -> None:
        self._last = Recent[str, str](REMEMBERED)
        self._latest = ""

    def next(self, worker_id: str, package_ids: Iterable[str], most: int) -> list[str]:
        """Choose at most `most` packages in the order of their ids.

        The choice starts behind the package that was chosen last for this worker. If none is remembered for this
        worker, the choice starts behind the last package of the most recent choice for any worker. After the last id,
        the first id follows.
        """
        ordered = sorted(package_ids)
        at = bisect_right(ordered, self._last.pop(worker_id, self._latest))
        chosen = [*ordered[at:], *ordered[:at]][:most]
        if len(chosen) < len(ordered):
            self._last[worker_id] = self._latest = chosen[-1]
        return chosen
