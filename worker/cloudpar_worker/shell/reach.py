"""Whether the master and its blob store answer, and the lines about it in the worker's log."""

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable

_AWAY = 2
"""Failures in a row that are worth a line. A single one is a connection that was closed while it idled."""

_REPEAT_S = 60.0
"""The same refusal is logged once in this time: a full disk, for example, refuses several requests a second."""


class Reach:
    """Whether each address answers, as all clients of one master see it together; logs when that changes.

    Args:
        stalled: Called for each repeated attempt with the microseconds since the last success of any.
    """

    def __init__(self, stalled: Callable[[int], None]) -> None:
        self._stalled = stalled
        self._failures: Counter[str] = Counter()
        self._logged: dict[str, float] = {}
        self._succeeded_at = time.monotonic()
        self._lock = threading.Lock()

    def failed(self, address: str, error: Exception) -> None:
        """No answer came from this address."""
        with self._lock:
            self._failures[address] += 1
            failures = self._failures[address]
        if failures == _AWAY:
            warn(f"{address} does not answer ({type(error).__name__}); trying until it does")

    def answered(self, address: str) -> None:
        """An answer came, of any status."""
        with self._lock:
            failures = self._failures.pop(address, 0)
        if failures >= _AWAY:
            warn(f"{address} answers again")

    def refused(self, address: str, why: str) -> None:
        """An answer says that the request may succeed later. Logged once in `_REPEAT_S` for each reason."""
        now = time.monotonic()
        with self._lock:
            new = now - self._logged.get(why, -_REPEAT_S) >= _REPEAT_S
            if new:
                self._logged = {text: at for text, at in self._logged.items() if now - at < _REPEAT_S} | {why: now}
        if new:
            warn(f"{address} answered: {why}; trying again")

    def succeeded(self) -> None:
        """Something is done that would have been tried until it is."""
        self._succeeded_at = time.monotonic()

    def repeats(self) -> None:
        """Something is tried again."""
        self._stalled(int((time.monotonic() - self._succeeded_at) * 1e6))


def warn(text: str) -> None:
    """Write one dated line to the worker's log, which is standard error."""
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} cloudpar worker: {text}", file=sys.stderr, flush=True)  # noqa: T201 - the log
