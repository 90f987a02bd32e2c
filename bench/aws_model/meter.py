"""Counts the requests, queue calls and table units that a simulated deployment uses in each second.

It also throttles requests above the limits of a table's partition.
"""

from collections import Counter, defaultdict

from support.timeline import Timeline


class Meter:
    """Counts by name and second.

    Attributes:
        seconds: By name: how much was used in each second.
        most_functions: How many functions ran at once, at most.
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
    """The reads or the writes of one package: what exceeds the limit of its partition is throttled.

    Attributes:
        waited_us: For how long requests waited, in all.
        refused: How many requests were throttled until their callers gave up.
    """

    def __init__(self, units_per_s: int) -> None:
        self._units_per_s = units_per_s
        self._free_at_us = 0
        self.waited_us = self.refused = 0

    def wait_us(self, units: float, now_us: int, patience_us: int) -> int | None:
        """Return how long a request of so many units waits; None if its caller gives up before.

        A second's units may be used at once.
        """
        free_at_us = max(self._free_at_us, now_us - 1_000_000) + round(units * 1e6 / self._units_per_s)
        waits_us = max(0, free_at_us - now_us)
        if waits_us > patience_us:
            self.refused += 1
            return None
        self._free_at_us = free_at_us
        self.waited_us += waits_us
        return waits_us
