"""Remembers a report that something cannot be written.

The master passes the report on to clients, because their results cannot arrive until the problem is fixed.
"""

import time
from collections.abc import Callable

from cloudpar_protocol.payloads import Unwritable

KEPT_S = 10.0
"""A report is forgotten after this many seconds. While the problem lasts, a new report comes sooner. A worker sends a
report every 2 s (with the default lease time). The master makes a report whenever it refuses a request, and clients
repeat a refused request after at most 6.25 s."""

HOLD_S = 5.0
"""While something cannot be written, awaits are held for at most this many seconds, so that clients soon hear when
writing works again."""


class StorageState:
    """Holds the newest report that the master, or a worker that shares the master's folder, cannot write.

    Args:
        wake: Called when a report comes while no other report is kept, so that the held awaits are answered.
    """

    def __init__(self, wake: Callable[[], None] = lambda: None) -> None:
        self._wake = wake
        self._report: Unwritable | None = None
        self._reported_s = 0.0

    @property
    def unwritable(self) -> Unwritable | None:
        """The newest report; None if none came within the last KEPT_S seconds."""
        if self._report is not None and time.monotonic() - self._reported_s >= KEPT_S:
            self._report = None
        return self._report

    def note(self, report: Unwritable) -> None:
        """Keep a report. If no other report was kept, also wake the held awaits."""
        first = self.unwritable is None
        self._report, self._reported_s = report, time.monotonic()
        if first:
            self._wake()
