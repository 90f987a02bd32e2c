"""Simulated time, and the events that are due in it."""

import heapq
from collections.abc import Callable
from itertools import count

START_S = 1_800_000_000.0


class Clock:
    """Runs events in the order of their time. The time stands still while an event runs."""

    def __init__(self) -> None:
        self.now_us = 0
        self._events: list[tuple[int, int, Callable[[], object]]] = []
        self._numbers = count()

    def now(self) -> float:
        """Return the simulated time in seconds since 1970."""
        return START_S + self.now_us / 1e6

    def date(self, at: float) -> float:
        """Return the same time."""
        return at

    def at(self, time_us: int, event: Callable[[], object]) -> None:
        heapq.heappush(self._events, (max(time_us, self.now_us), next(self._numbers), event))

    def after(self, delay_us: int, event: Callable[[], object]) -> None:
        self.at(self.now_us + delay_us, event)

    def step(self) -> None:
        """Run the next event."""
        self.now_us, _, event = heapq.heappop(self._events)
        event()
