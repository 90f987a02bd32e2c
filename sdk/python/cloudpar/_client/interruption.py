"""What Ctrl-C does while the program waits for results: it cancels the packages and prints what they have cost."""

import contextlib
import sys
import time
from collections.abc import Iterable

from cloudpar.errors import CloudparError

from .package_handle import PackageHandle
from .session import Session

SETTLE_S = 3.0
"""How long to wait for workers to stop cancelled tasks and report their time, in seconds. Usually they need less."""


def interrupt(session: Session, under_way: Iterable[PackageHandle]) -> None:
    """Cancel the packages that have not ended, and tell the user on standard error what they have cost."""
    packages = [handle for handle in under_way if not handle.ended.is_set()]
    if not packages:
        return
    charged_us = 0
    until = time.monotonic() + SETTLE_S
    for handle in packages:
        charged_us += _cancel(session, handle, until)
    what = f"package {packages[0].id}" if len(packages) == 1 else f"{len(packages)} packages"
    print(  # noqa: T201 - this is for the person at the terminal
        f"cloudpar: cancelled {what}; {charged_us / 1e6:.3f} s of execution time were charged", file=sys.stderr
    )


def _cancel(session: Session, handle: PackageHandle, until: float) -> int:
    handle.cancelled()
    try:
        charged_us = session.cancel(handle.id, allowance_s=SETTLE_S).charged_us
    except CloudparError as error:
        handle.lost(error)
        return 0
    with contextlib.suppress(CloudparError):
        charged_us = max(charged_us, session.settled_us(handle, until))
    return charged_us
