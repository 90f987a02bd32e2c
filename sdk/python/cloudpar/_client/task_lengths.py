"""The task durations of each function, so that later calls of a small map can be sent as one chunk."""

from collections import OrderedDict
from threading import Lock

REMEMBERED = 128
"""How many functions are remembered; beyond it, the one whose last package ended first is forgotten."""

WHOLE_US = 10_000
"""A package of at most this much work goes to a worker as one chunk, in microseconds: dividing it would cost more than
other workers could save."""

OWN_WHOLE_US = 200_000
"""The same limit for a pool's own master: its only worker gets all chunks anyway, and feeds single tasks."""


class TaskLengths:
    """The mean task duration of recently called functions, by the hash of their code. Safe for use by any thread.

    A master knows nothing of a new package, and cuts it into chunks of one task, since each task may take an hour. Each
    chunk needs several requests, which are most of the cost of a small map.
    """

    def __init__(self, *, own_master: bool) -> None:
        self._whole_us = OWN_WHOLE_US if own_master else WHOLE_US
        self._lock = Lock()
        self._mean_us: OrderedDict[str, int] = OrderedDict()

    def measured(self, code_hash: str, mean_us: int) -> None:
        """Note the mean task duration of an ended package, in microseconds; 0: nothing was measured."""
        if not mean_us:
            return
        with self._lock:
            self._mean_us[code_hash] = mean_us
            self._mean_us.move_to_end(code_hash)
            if len(self._mean_us) > REMEMBERED:
                self._mean_us.popitem(last=False)

    def are_short(self, code_hash: str, tasks: int) -> bool:
        """Whether this many tasks of a function are known to be as little work as one chunk."""
        mean_us = self._mean_us.get(code_hash)
        return mean_us is not None and mean_us * tasks <= self._whole_us
