"""The Lambda function that a scheduled rule invokes once a minute.

It makes the fleet large enough, reports lost chunks to their packages, and folds the packages that are due.
"""

from collections.abc import Mapping
from typing import Any, Final

from cloudpar_master.adapters.aws.backend import from_environment
from cloudpar_master.services.fleet_keeper import FleetKeeper
from cloudpar_master.services.steps import finish
from cloudpar_master.services.timer import MESSAGES, PACKAGES, Timer

from .request_log import Entry, RequestLog

ENOUGH_MS: Final = 15_000
"""If the invocation has fewer milliseconds left than this, it folds no further packages. The next invocation folds the
others."""

ENOUGH_FOR_FOLDING_MS: Final = 35_000
"""If the invocation has fewer milliseconds left than this, it reports no further lost chunks, so that there is time for
folding."""

_backend = from_environment(worker_token=False)
_timer = Timer(_backend)
_keeper = FleetKeeper(_backend)
_log = RequestLog()


def handle(event: Mapping[str, Any], context: Any) -> dict[str, int]:
    """Start the missing hosts of the fleet, report the lost chunks, and fold the due packages.

    A package that cannot be folded gets a later due time, so that the next rounds fold other packages. A chunk that
    cannot be reported is put off, too. If one of these three steps fails, the later ones run nevertheless.

    Raises:
        ShortFleet: Hosts of the fleet are missing, or do not work.
        ExceptionGroup: Some packages could not be folded, or some lost chunks could not be reported. All other packages
            and chunks were handled.
        Exception: AWS refuses to list the packages at work, the lost chunks or the packages that are due.
    """
    del event
    entry = _log.entry("tick", context)
    try:
        try:
            _keeper.tick()
        finally:
            try:
                _report_lost(context, entry)
            finally:
                folded = _fold_due(context, entry)
    except Exception as error:
        entry.fail(error)
        raise
    else:
        return {"folded": folded}
    finally:
        entry.close()


def _report_lost(context: Any, entry: Entry) -> None:
    package_ids: list[str] = []
    failures: list[Exception] = []
    while True:
        reported = _timer.report_lost()
        package_ids += reported.package_ids
        failures += reported.failures
        if reported.messages < MESSAGES or context.get_remaining_time_in_millis() < ENOUGH_FOR_FOLDING_MS:
            break
    entry.packages(package_ids)
    entry.count("ChunksLost", len(package_ids))
    if failures:
        raise ExceptionGroup("some lost chunks could not be reported", failures)


def _fold_due(context: Any, entry: Entry) -> int:
    folded = 0
    failures: list[Exception] = []
    while True:
        due = finish(_timer.fold_due())
        folded += due.packages - len(due.failures)
        failures += due.failures
        if due.packages < PACKAGES or context.get_remaining_time_in_millis() < ENOUGH_MS:
            break
    entry.note(folded=folded)
    if failures:
        raise ExceptionGroup("some packages could not be folded", failures)
    return folded
