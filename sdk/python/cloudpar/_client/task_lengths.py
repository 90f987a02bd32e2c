"""How long the tasks of a function lasted: what a loop over small maps tells about its next one."""

from collections import OrderedDict
from threading import Lock

REMEMBERED = 128
"""How many functions are remembered."""

WHOLE_US = 10_000
"""A package of so much work goes to a worker as one chunk: dividing it costs more than other workers would save."""

OWN_WHOLE_US = 200_000
"""The same with a master that the pool has started: its one worker gets all chunks, and divides them by tasks."""


class TaskLengths:
    """The mean length of the tasks of the functions called last, by their task code. For any thread.

    A master knows nothing of a new package, and cuts it into chunks of one task, since each may last an hour. Each
    chunk takes some calls, which are most of what a small map costs.
    """

    def __init__(self, *, own_master: bool) -> None:
        self._whole_us = OWN_WHOLE_US if own_master else WHOLE_US
        self._lock = Lock()
        self._mean_us: OrderedDict[str, int] = OrderedDict()

    def measured(self, code_hash: str, mean_us: int) -> None:
        """A package of this function has ended; 0 says that nothing was measured."""
        if not mean_us:
            return
        with self._lock:
            self._mean_us[code_hash] = mean_us
            self._mean_us.move_to_end(code_hash)
            if len(self._mean_us) > REMEMBERED:
                self._mean_us.popitem(last=False)

    def chunksize(self, code_hash: str, tasks: int) -> int | None:
        """All tasks of a package, if they are likely to be short enough for one chunk; None: the master decides."""
        return tasks if self.are_short(code_hash, tasks) else None

    def are_short(self, code_hash: str, tasks: int) -> bool:
        """Whether so many tasks of a function are known to be as little work as one chunk."""
        mean_us = self._mean_us.get(code_hash)
        return mean_us is not None and mean_us * tasks <= self._whole_us
