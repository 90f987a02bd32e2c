"""The Lambda function that a scheduled rule invokes once a minute. It folds the packages that are due."""

from collections.abc import Mapping
from typing import Any

from cloudpar_master.adapters.aws.backend import from_environment
from cloudpar_master.services.timer import PACKAGES, Timer

from .request_log import RequestLog

ENOUGH_MS = 15_000
"""If the invocation has less time left than this, in milliseconds, it starts no further round. The next invocation
folds the other packages."""

_timer = Timer(from_environment(worker_token=False))
_log = RequestLog()


def handle(event: Mapping[str, Any], context: Any) -> dict[str, int]:
    """Fold the packages that are due, in rounds, until none is left or little time is left.

    Raises:
        Exception: A round failed. No further round starts; the next invocation folds what is left.
    """
    del event
    entry = _log.entry("tick", context)
    folded = 0
    try:
        while True:
            done = _timer.fold_due()
            folded += done
            if done < PACKAGES or context.get_remaining_time_in_millis() < ENOUGH_MS:
                break
    except Exception as error:
        entry.fail(error)
        raise
    finally:
        entry.note(folded=folded)
        entry.close()
    return {"folded": folded}
