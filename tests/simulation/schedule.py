"""Simulated time and simulated concurrency: one thread, in which a seed decides which task goes on next."""

import heapq
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

from greenlet import getcurrent, greenlet

START_S = 1_800_000_000.0


class Box:
    """A place for one answer, and the task that waits for it."""

    def __init__(self) -> None:
        self.answer: Any = None
        self.waiter: Any = None


class Schedule:
    """Decides what happens when. Tasks are greenlets: they go on until they sleep or wait.

    Attributes:
        now_us: The true time, which no part of the system knows.
        random: The only source of chance.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now_us = 0
        self._hub: Any = getcurrent()
        self._events: list[tuple[int, int, Callable[[], object]]] = []
        self._numbers = count()

    def now(self) -> float:
        """Return the true time in seconds since 1970, as clocks do."""
        return START_S + self.now_us / 1e6

    def date(self, at: float) -> float:
        """Return the same time."""
        return at

    def after(self, delay_us: int, event: Callable[[], object]) -> None:
        """Call a function later. It must not sleep: use `spawn` for one that does."""
        heapq.heappush(self._events, (self.now_us + max(delay_us, 0), next(self._numbers), event))

    def spawn(self, work: Callable[[], object], delay_us: int = 0) -> None:
        """Start a task."""
        self.after(delay_us, greenlet(work, self._hub).switch)

    def sleep(self, delay_us: int) -> None:
        """Let the calling task go on later. Others go on meanwhile."""
        me: Any = getcurrent()
        self.after(delay_us, me.switch)
        self._hub.switch()

    def wait(self, box: Box, timeout_us: int) -> Any:
        """Wait for an answer; None: there is none in this time."""
        me: Any = getcurrent()
        box.waiter = me

        def give_up() -> None:
            if box.waiter is me:
                box.waiter = None
                me.switch()

        self.after(timeout_us, give_up)
        self._hub.switch()
        return box.answer

    def fill(self, box: Box, answer: Any) -> None:
        """Put an answer into a box. A task that no longer waits does not get it."""
        waiter, box.waiter = box.waiter, None
        if waiter is not None:
            box.answer = answer
            self.after(0, waiter.switch)

    def step(self) -> None:
        """Let the next event happen."""
        self.now_us, _, event = heapq.heappop(self._events)
        event()

    def about(self, mean_us: float) -> int:
        """Draw a delay: mostly shorter than the mean, now and then much longer."""
        left = 1.0 - self.random.random()
        return int(mean_us * (0.5 / left if left > 0.1 else 5.0) * 0.6)
