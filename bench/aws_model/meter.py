"""Counts the requests, queue calls and table units that a simulated deployment uses in each second.

It also throttles requests above the limits of a table's partition.
"""

from collections import Counter, defaultdict

from support.timeline import Timeline


class Meter:
    """Counts the use of AWS's services, by name and second.

    Attributes:
        seconds: How much was used in each second, by name.
        most_functions: The largest number of functions that ran at the same time.
    """

    def __init__(self, clock: Timeline) -> None:
        self._clock = clock
        self.seconds: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self.most_functions = 0

    def add(self, name: str, number: float = 1) -> None:
        """Count something that is used now."""
        self.seconds[name][self._clock.now_us // 1_000_000] += number  # type: ignore[assignment]  # halves of units

    def peak(self, name: str) -> float:
        """Return the most that was used in a second."""
        return max(self.seconds[name].values(), default=0)


class Partition:
    """Throttles the reads, or the writes, of one package if they exceed the limit of the package's partition.

    Attributes:
        waited_us: For how long all requests together waited, in microseconds.
        refused: How many requests were throttled until their callers gave up.
    """

    def __init__(self, units_per_s: int) -> None:
        self._units_per_s = units_per_s
        self._free_at_us = 0
        self.waited_us = self.refused = 0

    def wait_us(self, units: float, now_us: int, patience_us: int) -> int | None:
        """Return how long a request waits, in microseconds; None if this is longer than `patience_us`.

        The units of one second may be used at once.
        """
        free_at_us = max(self._free_at_us, now_us - 1_000_000) + round(units * 1e6 / self._units_per_s)
        waits_us = max(0, free_at_us - now_us)
        if waits_us > patience_us:
            self.refused += 1
            return None
        self._free_at_us = free_at_us
        self.waited_us += waits_us
        return waits_us
