"""Repeats attempts of a request until one succeeds, or the caller decides that further ones cannot help."""

import random
import threading
from collections.abc import Callable
from typing import TypeVar

from cloudpar_protocol.errors import RequestError

T = TypeVar("T")


class Stopped(Exception):
    """The caller no longer wants an answer."""


class Backoff:
    """The delays between attempts, in seconds: each is twice as long as the one before, up to a limit."""

    def __init__(self, first_s: float, longest_s: float) -> None:
        self._first_s = self._next_s = first_s
        self._longest_s = longest_s

    def reset(self) -> None:
        """Start with the first delay again."""
        self._next_s = self._first_s

    def next_s(self, asked_s: float | None = None) -> float:
        """Return the next delay, with a random addition of at most a quarter.

        If the server has requested a delay (`asked_s`), the next delay is at least as long. Without the random
        addition, all clients of a master that was away would return at the same time.
        """
        delay_s, self._next_s = self._next_s, min(2 * self._next_s, self._longest_s)
        return max(asked_s or 0.0, delay_s) * random.uniform(1.0, 1.25)  # noqa: S311 - jitter


def retry(once: Callable[[], T], failed: Callable[[OSError | RequestError], float], stopped: threading.Event) -> T:
    """Make attempts until one succeeds, and return its answer.

    Args:
        once: Makes one attempt. It raises an OSError if there is no answer, and a RequestError if it is refused.
        failed: Returns the delay before the next attempt, in seconds, or raises an error if further attempts cannot
            help.
        stopped: Once it is set, no further attempt starts, and the failure of an attempt under way is not reported.

    Raises:
        Stopped: `stopped` was set before an attempt succeeded.
        Exception: `failed` raised this error, or `once` raised it and it is neither an OSError nor a RequestError.
    """
    while not stopped.is_set():
        try:
            return once()
        except (OSError, RequestError) as error:
            if stopped.is_set():
                raise Stopped from error
            delay_s = failed(error)
        stopped.wait(delay_s)
    raise Stopped
