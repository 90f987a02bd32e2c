"""The Lambda function that a scheduled rule invokes once a minute.

It makes the fleet large enough, and folds the packages that are due.
"""

from collections.abc import Mapping
from typing import Any

from cloudpar_master.adapters.aws.backend import from_environment
from cloudpar_master.services.fleet_keeper import FleetKeeper
from cloudpar_master.services.timer import PACKAGES, Timer

from .request_log import Entry, RequestLog

ENOUGH_MS = 15_000
"""If the invocation has fewer milliseconds left than this, it starts no further round. The next invocation folds the
other packages."""

_backend = from_environment(worker_token=False)
_timer = Timer(_backend)
_keeper = FleetKeeper(_backend)
_log = RequestLog()


def handle(event: Mapping[str, Any], context: Any) -> dict[str, int]:
    """Start the missing hosts of the fleet. Then fold the due packages in rounds until none, or little time, is left.

    A package that cannot be folded gets a later due time, so that the next rounds fold other packages.

    Raises:
        Exception: The packages at work or the registry of due packages cannot be read.
        SilentFleet: Hosts run, but no worker on them reports; all packages were folded.
        ExceptionGroup: Some packages could not be folded; all others were.
    """
    del event
    entry = _log.entry("tick", context)
    try:
        try:
            _keeper.tick()
        finally:  # packages must not wait for a fleet that cannot be looked at
            folded = _rounds(context, entry)
    except Exception as error:
        entry.fail(error)
        raise
    else:
        return {"folded": folded}
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
