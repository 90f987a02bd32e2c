"""How long tasks of a package last, as far as this worker knows."""

from collections import OrderedDict
from math import ceil
from typing import Final

from cloudpar_protocol.worker_messages import Lease

_MEMORY_TASKS: Final = 200
"""So many tasks back reaches the mean: a package's tasks may become slower on the way."""


FUNCTIONS: Final = 128
"""Of how many functions a worker remembers how long their tasks took."""

SHORT_US: Final = 1_000
"""The longest mean that is remembered."""

_PUBLISH_US: Final = 200_000


class PackageDurations:
    """A running mean. `samples` counts the tasks measured here, `publications` how often results went from here."""

    def __init__(self, told_us: int) -> None:
        self.mean_us = float(told_us)
        self.samples = 0
        self.publications = 0

    def collect_us(self, most_us: int) -> int:
        """For how long results may be collected. Somebody looks forward to the first ones: these go soon."""
        return min(most_us, _PUBLISH_US << min(self.publications, 20))

    def told(self, mean_us: int) -> None:
        """What the master says counts until something was measured here; 0 says that it does not know."""
        if mean_us and not self.samples:
            self.mean_us = float(mean_us)

    def measured(self, total_us: int, tasks: int) -> None:
        """So many tasks took so long together."""
        known = min(self.samples, _MEMORY_TASKS)
        weight = min(tasks, _MEMORY_TASKS)
        self.mean_us = (self.mean_us * known + total_us / tasks * weight) / (known + weight)
        self.samples += tasks


class FunctionLengths:
    """The mean length of short tasks of functions that ran here, for the next packages of the same account.

    Without it each package starts with one task at a time, since its tasks may take an hour each. Long tasks are not
    remembered: they are fed one at a time anyway, and another package of the function may have short ones.
    """

    def __init__(self) -> None:
        self._mean_us: OrderedDict[tuple[str, str], float] = OrderedDict()

    def mean_us(self, lease: Lease) -> int:
        """What a task of this function took in the package that ran last; 0: unknown, or long."""
        return ceil(self._mean_us.get((lease.account, lease.code.hash), 0.0))

    def measured(self, lease: Lease, mean_us: float) -> None:
        """Tasks of a package have ended."""
        key = lease.account, lease.code.hash
        if mean_us > SHORT_US:
            self._mean_us.pop(key, None)
            return
        self._mean_us[key] = max(mean_us, 1.0)
        self._mean_us.move_to_end(key)
        if len(self._mean_us) > FUNCTIONS:
            self._mean_us.popitem(last=False)
