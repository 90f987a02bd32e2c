"""Handles Ctrl-C while the program waits for results: cancels the packages and prints what they have cost."""

import contextlib
import sys
import time
from collections.abc import Iterable

from cloudpar.errors import CloudparError, MasterUnreachable

from .package_handle import PackageHandle
from .session import Session

SETTLE_S = 3.0
"""How long to wait, for all packages together, until the workers have stopped the cancelled tasks and reported their
time, in seconds. Usually the workers need less time. Each request to cancel is also repeated for at most this time.
"""

AWAY_S = 0.1
"""Once the master has not answered a request to cancel, how long to try to cancel each further package, in seconds."""


def interrupt(session: Session, under_way: Iterable[PackageHandle]) -> None:
    """Cancel the packages that have not ended, and print to standard error what they have cost.

    If the master does not confirm the cancellation of a package, readers of the package get the error, and the printed
    cost does not include this package.
    """
    packages = [handle for handle in under_way if not handle.ended.is_set()]
    if not packages:
        return
    charged_us = 0
    until = time.monotonic() + SETTLE_S
    allowance_s = SETTLE_S
    for handle in packages:
        handle.cancelled()
        try:
            handle_us = session.cancel(handle.id, allowance_s=allowance_s).charged_us
        except CloudparError as error:
            handle.lost(error)
            if isinstance(error, MasterUnreachable):
                allowance_s = AWAY_S  # otherwise a hundred packages would make Ctrl-C wait for five minutes
            continue
        with contextlib.suppress(CloudparError):
            handle_us = max(handle_us, session.settled_us(handle, until))
        charged_us += handle_us
    what = f"package {packages[0].id}" if len(packages) == 1 else f"{len(packages)} packages"
    print(  # noqa: T201 - the text is for the person at the terminal
        f"cloudpar: cancelled {what}; {charged_us / 1e6:.3f} s of execution time were charged", file=sys.stderr
    )
