"""The Lambda function that a scheduled rule invokes once a minute. It folds the packages that are due."""

from collections.abc import Mapping
from typing import Any

from cloudpar_master.adapters.aws.backend import from_environment
from cloudpar_master.services.timer import PACKAGES, Timer

from .request_log import Entry, RequestLog

ENOUGH_MS = 15_000
"""If the invocation has fewer milliseconds left than this, it starts no further round. The next invocation folds the
other packages."""

_timer = Timer(from_environment(worker_token=False))
_log = RequestLog()


def handle(event: Mapping[str, Any], context: Any) -> dict[str, int]:
    """Fold the packages that are due, in rounds, until none is left or little time is left.

    Packages that cannot be folded are put off, so that the rounds go on with the others.

    Raises:
        Exception: The registry of due packages cannot be read.
        ExceptionGroup: Some packages could not be folded; all others were.
    """
    del event
    entry = _log.entry("tick", context)
    try:
        return {"folded": _rounds(context, entry)}
    except Exception as error:
        entry.fail(error)
        raise
    finally:
        entry.close()


def _rounds(context: Any, entry: Entry) -> int:
    folded = 0
    failures: list[Exception] = []
    while True:
        due = _timer.fold_due()
        folded += due.packages - len(due.failures)
        failures += due.failures
        if due.packages < PACKAGES or context.get_remaining_time_in_millis() < ENOUGH_MS:
            break
    entry.note(folded=folded)
    if failures:
        raise ExceptionGroup("some packages could not be folded", failures)
    return folded
