"""Simulated time and simulated concurrency: one thread, in which a seed decides which task goes on next."""

from collections.abc import Callable
from random import Random
from typing import Any

from greenlet import getcurrent, greenlet

from support.timeline import Timeline


class Box:
    """A place for one answer, and the task that waits for it."""

    def __init__(self) -> None:
        self.answer: Any = None
        self.waiter: Any = None


class Schedule(Timeline):
    """Decides what happens when. Tasks are greenlets: they go on until they sleep or wait.

    Its time is the true time, which no part of the system knows. An event that `after` runs must not sleep: `spawn`
    starts a task that may.

    Attributes:
        random: The only source of chance.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = Random(seed)
        self._hub: Any = getcurrent()

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

    def about(self, mean_us: float) -> int:
        """Draw a delay: mostly shorter than the mean, now and then much longer."""
        left = 1.0 - self.random.random()
        return int(mean_us * (0.5 / left if left > 0.1 else 5.0) * 0.6)
