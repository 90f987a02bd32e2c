"""How long tasks of a package last, as far as this worker knows."""

from typing import Final

_MEMORY_TASKS: Final = 200
"""So many tasks back reaches the mean: a package's tasks may become slower on the way."""


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
        """What the master says counts until something was measured here."""
        if not self.samples:
            self.mean_us = float(mean_us)

    def measured(self, total_us: int, tasks: int) -> None:
        """So many tasks took so long together."""
        known = min(self.samples, _MEMORY_TASKS)
        weight = min(tasks, _MEMORY_TASKS)
        self.mean_us = (self.mean_us * known + total_us / tasks * weight) / (known + weight)
        self.samples += tasks
