"""Simulated time and simulated concurrency: one thread, in which one seed decides who goes on next."""

import heapq
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

from greenlet import getcurrent, greenlet

BEGIN_S = 1_800_000_000.0


class Box:
    """Where an answer is put, once, and who waits for it."""

    def __init__(self) -> None:
        self.answer: Any = None
        self.waiter: Any = None


class Schedule:
    """What happens when. Tasks are greenlets: they go on until they sleep or wait.

    Attributes:
        now_us: The true time, which nobody in the system knows.
        random: The only source of chance.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now_us = 0
        self._hub: Any = getcurrent()
        self._events: list[tuple[int, int, Callable[[], object]]] = []
        self._numbers = count()

    def now(self) -> float:
        """The true time, as clocks say it."""
        return BEGIN_S + self.now_us / 1e6

    def after(self, delay_us: int, event: Callable[[], object]) -> None:
        """Let something happen later. It must not sleep: what does is spawned."""
        heapq.heappush(self._events, (self.now_us + max(delay_us, 0), next(self._numbers), event))

    def spawn(self, work: Callable[[], object], delay_us: int = 0) -> None:
        """Begin a task."""
        self.after(delay_us, greenlet(work, self._hub).switch)

    def sleep(self, delay_us: int) -> None:
        """The task that calls goes on later; others go on meanwhile."""
        me: Any = getcurrent()
        self.after(delay_us, me.switch)
        self._hub.switch()

    def wait(self, box: Box, timeout_us: int) -> Any:
        """An answer; None if there is none in this time."""
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
        """Answer. Whoever no longer waits does not hear it."""
        waiter, box.waiter = box.waiter, None
        if waiter is not None:
            box.answer = answer
            self.after(0, waiter.switch)

    def step(self) -> None:
        """The next thing happens."""
        self.now_us, _, event = heapq.heappop(self._events)
        event()

    def about(self, mean_us: float) -> int:
        """A delay: mostly shorter than the mean, now and then much longer."""
        left = 1.0 - self.random.random()
        return int(mean_us * (0.5 / left if left > 0.1 else 5.0) * 0.6)
