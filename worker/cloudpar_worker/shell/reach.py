"""Records whether the master and the blob store answer, and logs each change."""

import errno
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable

from cloudpar_protocol.one_line import one_line
from cloudpar_protocol.payloads import WHY_CHARS, Unwritable
from cloudpar_protocol.transport.identity import Unproved
from cloudpar_protocol.transport.payload_folder import PayloadFolder

_AWAY = 2
"""After this many failures in a row, the worker logs one line. A single failure is usually a closed idle connection."""

_REPEAT_S = 60.0
"""Each reason is logged at most once in this many seconds. A full disk, for example, causes many failures a second."""

_LINE_CHARS = 2_000
"""The most characters of one line of the log, without its date; the rest of a longer line is omitted."""


class Reach:
    """Records whether each address answers. All clients of one master use the same object.

    Args:
        stalled: Is called before each repeated attempt. Its argument is the time since `succeeded` was last called, or
            since this object was made, in microseconds.
    """

    def __init__(self, stalled: Callable[[int], None]) -> None:
        self._stalled = stalled
        self._failures: Counter[str] = Counter()
        self._logged: dict[str, float] = {}
        self._succeeded_at = time.monotonic()
        self._lock = threading.Lock()

    def failed(self, address: str, error: Exception) -> None:
        """Record that an address did not answer."""
        with self._lock:
            self._failures[address] += 1
            failures = self._failures[address]
        if failures == _AWAY:
            why = str(error) if isinstance(error, Unproved) else type(error).__name__
            warn(f"{address} does not answer ({why}); trying until it does")

    def answered(self, address: str) -> None:
        """Record that an address answered, with whatever status."""
        with self._lock:
            failures = self._failures.pop(address, 0)
        if failures >= _AWAY:
            warn(f"{address} answers again")

    def refused(self, address: str, why: str) -> None:
        """Record that a request was refused but may succeed later.

        Each reason is logged at most once in `_REPEAT_S`.
        """
        if self._is_new(why):
            warn(f"{address} answered: {why}; trying again")

    def not_written(self, folder: PayloadFolder, error: OSError) -> Unwritable:
        """Record that a payload could not be written, and return the reason.

        Each reason is logged at most once in `_REPEAT_S`.
        """
        why = f"a worker cannot write results to {folder} ({error.strerror or error})"
        if self._is_new(why):
            number = errno.errorcode.get(error.errno or 0, type(error).__name__)
            warn(f"results cannot be written to {folder} ({error.strerror or error}, {number}); trying until they can")
        return Unwritable(why[:WHY_CHARS], error.errno or 0)

    def _is_new(self, why: str) -> bool:
        now = time.monotonic()
        with self._lock:
            new = now - self._logged.get(why, -_REPEAT_S) >= _REPEAT_S
            if new:
                self._logged = {text: at for text, at in self._logged.items() if now - at < _REPEAT_S} | {why: now}
        return new

    def succeeded(self) -> None:
        """Record that a request succeeded. Callers do not record requests that they never repeat, such as beats."""
        self._succeeded_at = time.monotonic()

    def repeats(self) -> None:
        """Record that a request has failed and will be repeated."""
        self._stalled(int((time.monotonic() - self._succeeded_at) * 1e6))


def warn(text: str) -> None:
    """Write one line with the date to standard error, which is the worker's log.

    Task code may have chosen parts of the text, so characters that cannot be printed are replaced.
    """
    line = one_line(text, _LINE_CHARS)
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} cloudpar worker: {line}", file=sys.stderr, flush=True)
