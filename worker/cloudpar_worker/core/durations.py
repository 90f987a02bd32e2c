"""The durations of a package's tasks, as far as this worker knows."""

from collections import OrderedDict
from math import ceil
from typing import Final

from cloudpar_protocol.worker_messages import Lease

_MEMORY_TASKS: Final = 200
"""The mean covers about this many of the most recent tasks, because tasks of a package may become slower over time."""


FUNCTIONS: Final = 128
"""For how many functions a worker remembers the duration of tasks. A further function replaces the function that was
measured longest ago.
"""

SHORT_US: Final = 1_000
"""The longest mean duration that a worker remembers for a function, in microseconds."""

_PUBLISH_US: Final = 200_000
"""How long the worker collects the first results of a package before it publishes them, in microseconds. The time
doubles with each publication, up to the time that the lease allows (`collect_us`).
"""


class PackageDurations:
    """The mean duration of a package's tasks, `mean_us`; 0 if unknown.

    `samples` is the number of tasks that this worker has measured. `publications` is the number of times that this
    worker has published results of a lease of the package. Several publications that it sends together for one lease
    count once.
    """

    def __init__(self, suggested_us: int) -> None:
        self.mean_us = float(suggested_us)
        self.samples = 0
        self.publications = 0

    def collect_us(self, most_us: int) -> int:
        """Return the time for which the worker collects results before it publishes them; at most `most_us`.

        The time is short for a package's first results, because a client usually watches for them.
        """
        return min(most_us, _PUBLISH_US << min(self.publications, 20))

    def suggest(self, mean_us: int) -> None:
        """Use the master's mean until this worker has measured a task; 0 means that the master knows no mean."""
        if mean_us and not self.samples:
            self.mean_us = float(mean_us)

    def measured(self, total_us: int, tasks: int) -> None:
        """Include further tasks in the mean; together they took `total_us`."""
        known = min(self.samples, _MEMORY_TASKS)
        weight = min(tasks, _MEMORY_TASKS)
        self.mean_us = (self.mean_us * known + total_us / tasks * weight) / (known + weight)
        self.samples += tasks


class FunctionLengths:
    """The mean durations of functions with short tasks, for later packages of the same account.

    As long as the duration of a package's tasks is unknown, the tasks are fed one at a time, because each may take an
    hour. The mean of an earlier package with the same function avoids this slow start. The durations of long tasks are
    not remembered, because feeding long tasks one at a time costs little.
    """

    def __init__(self) -> None:
        self._mean_us: OrderedDict[tuple[str, str], float] = OrderedDict()

    def mean_us(self, lease: Lease) -> int:
        """Return the remembered mean duration of the function of a lease; 0 if none is remembered."""
        return ceil(self._mean_us.get((lease.account, lease.code.hash), 0.0))

    def measured(self, lease: Lease, mean_us: float) -> None:
        """Record the mean duration of the tasks of a lease's function, or forget the function if its tasks are long."""
        key = lease.account, lease.code.hash
        if mean_us > SHORT_US:
            self._mean_us.pop(key, None)
            return
        self._mean_us[key] = max(mean_us, 1.0)
        self._mean_us.move_to_end(key)
        if len(self._mean_us) > FUNCTIONS:
            self._mean_us.popitem(last=False)
