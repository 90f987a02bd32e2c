"""Keeps what cannot be written now. Clients learn of it, because their results cannot arrive until it is fixed."""

import time
from collections.abc import Callable

from cloudpar_protocol.payloads import Unwritable

KEPT_S = 10.0
"""A report is forgotten after this many seconds. While the problem lasts, a new report comes sooner: from a worker at
least every 2 s, and from the master when a caller repeats a refused request, after at most 6.25 s."""

HOLD_S = 5.0
"""While something cannot be written, awaits are held for at most this many seconds, so that clients soon hear when it
can be written again."""


class StorageState:
    """The newest report that the master cannot write, or that a worker that shares its folder cannot.

    Args:
        wake: Called when a report comes after a time without one, so that held awaits answer.
    """

    def __init__(self, wake: Callable[[], None] = lambda: None) -> None:
        self._wake = wake
        self._report: Unwritable | None = None
        self._reported_s = 0.0

    @property
    def unwritable(self) -> Unwritable | None:
        """What cannot be written now, or None."""
        if self._report is not None and time.monotonic() - self._reported_s >= KEPT_S:
            self._report = None
        return self._report

    def note(self, report: Unwritable) -> None:
        """Keep a report, and wake the held awaits if it is the first."""
        first = self.unwritable is None
        self._report, self._reported_s = report, time.monotonic()
        if first:
            self._wake()
