"""Simulated time: what is to happen when."""

import heapq
from collections.abc import Callable
from itertools import count

BEGIN_S = 1_800_000_000.0


class Clock:
    """Events in order of their time, and the time of the one that happens now."""

    def __init__(self) -> None:
        self.now_us = 0
        self._events: list[tuple[int, int, Callable[[], object]]] = []
        self._numbers = count()

    def now(self) -> float:
        """For the masters, in seconds."""
        return BEGIN_S + self.now_us / 1e6

    def at(self, time_us: int, event: Callable[[], object]) -> None:
        """Let something happen."""
        heapq.heappush(self._events, (max(time_us, self.now_us), next(self._numbers), event))

    def after(self, delay_us: int, event: Callable[[], object]) -> None:
        """Let something happen later."""
        self.at(self.now_us + delay_us, event)

    def step(self) -> None:
        """The next thing."""
        self.now_us, _, event = heapq.heappop(self._events)
        event()
