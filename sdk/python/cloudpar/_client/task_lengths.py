"""Remembers the task durations of each function, so that later small maps can be sent as one chunk."""

from collections import OrderedDict
from threading import Lock

REMEMBERED = 128
"""How many functions are remembered. A further function replaces the function that was measured longest ago."""

WHOLE_US = 10_000
"""A package of at most this much work, in microseconds, is sent as one chunk, because dividing the package would cost
more time than several workers could save.
"""

OWN_WHOLE_US = 200_000
"""The same limit for a pool with its own master. This limit is higher, because such a pool has only one worker. This
worker gets all chunks anyway, and divides a chunk among its executors.
"""


class TaskLengths:
    """The mean task duration of recently called functions, by the hash of their code. Any thread may use it.

    A master does not know the durations of a new package's tasks, and each task may take an hour. Therefore it cuts a
    small package into chunks of one task. Each chunk needs several requests, which are most of the cost of a small map.
    """

    def __init__(self, *, own_master: bool) -> None:
        self._whole_us = OWN_WHOLE_US if own_master else WHOLE_US
        self._lock = Lock()
        self._mean_us: OrderedDict[str, int] = OrderedDict()

    def measured(self, code_hash: str, mean_us: int) -> None:
        """Record the mean task duration of an ended package, in microseconds; 0 means that nothing was measured."""
        if not mean_us:
            return
        with self._lock:
            self._mean_us[code_hash] = mean_us
            self._mean_us.move_to_end(code_hash)
            if len(self._mean_us) > REMEMBERED:
                self._mean_us.popitem(last=False)

    def are_short(self, code_hash: str, tasks: int) -> bool:
        """Whether this many tasks of a function are known to be so little work that they should be one chunk."""
        mean_us = self._mean_us.get(code_hash)
        return mean_us is not None and mean_us * tasks <= self._whole_us
