import asyncio
from collections.abc import Callable


class Deadline:
    """Calls a function if it is not set again, or cleared, in time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_set(self) -> bool:
        """Whether a function is still to be called."""
        return self._timer is not None

    def set(self, seconds: float, passed: Callable[[], None]) -> None:
        """Call `passed` after this time, instead of what was set before."""
        self.clear()
        self._timer = self._loop.call_later(seconds, passed)

    def clear(self) -> None:
        """Call nothing."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
