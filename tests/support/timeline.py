"""Simulated time, and the events that are due in it."""

import heapq
from collections.abc import Callable
from itertools import count

from support.clock import NOW


class Timeline:
    """Runs events in the order of their times. The time stands still while an event runs.

    It is also a master's clock.

    Attributes:
        now_us: The time since the start, in microseconds.
    """

    def __init__(self) -> None:
        self.now_us = 0
        self._events: list[tuple[int, int, Callable[[], object]]] = []
        self._numbers = count()

    def now(self) -> float:
        """Return the simulated time in seconds since 1970."""
        return NOW + self.now_us / 1e6

    def date(self, at: float) -> float:
        """Return the same time."""
        return at

    def after(self, delay_us: int, event: Callable[[], object]) -> None:
        """Run an event later."""
        heapq.heappush(self._events, (self.now_us + max(delay_us, 0), next(self._numbers), event))

    def move(self, at_us: int) -> None:
        """Set the time."""
        self.now_us = at_us

    def step(self) -> None:
        """Run the next event."""
        at_us, _, event = heapq.heappop(self._events)
        self.move(at_us)
        event()

    def run_until(self, at_us: int) -> None:
        """Run all events that are due until this time."""
        while self._events and self._events[0][0] <= at_us:
            self.step()
        self.move(at_us)
