import asyncio
from collections.abc import Callable


class Deadline:
    """A timer that calls a function when its time is over, unless the timer is set again or cleared before."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_set(self) -> bool:
        """Whether the timer runs."""
        return self._timer is not None

    def set(self, seconds: float, passed: Callable[[], None]) -> None:
        """Call `passed` after this many seconds. A function that was set before is then not called."""
        self.clear()
        self._timer = self._loop.call_later(seconds, passed)

    def clear(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
