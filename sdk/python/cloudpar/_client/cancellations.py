"""Cancels packages. After Ctrl-C it also prints what they have cost."""

import contextlib
import sys
import time
from collections.abc import Iterable

from cloudpar.errors import CloudparError, MasterUnreachable
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import AwaitTasks, CancelTasks, CancelTasksReply, Cursor
from cloudpar_protocol.limits import HOLD_S
from cloudpar_protocol.payloads import Range

from .connection import Connection
from .package_handle import PackageHandle
from .session_end import SessionEnd

SETTLE_S = 3.0
"""How long to wait, for all packages together, until the workers have stopped the cancelled tasks and reported the
tasks' time, in seconds. Usually the workers need less time. Each request to cancel is also repeated for at most this
time.
"""

SETTLE_PAUSE_S = 0.05
"""The shortest pause between two requests for a package's charge, in seconds."""

AWAY_S = 0.1
"""How long to try to cancel each further package, in seconds, if the master has left a request to cancel unanswered."""


class Cancellations:
    """Cancels packages of one session. Any thread may use it.

    Args:
        connection: The connection to the master.
        session: The session's id.
        end: The end of the session.
    """

    def __init__(self, connection: Connection, session: str, end: SessionEnd) -> None:
        self._connection = connection
        self._session = session
        self._end = end

    def cancel(
        self,
        package_id: str,
        ranges: list[Range] | None = None,
        *,
        only_queued: bool = False,
        allowance_s: float | None = None,
    ) -> CancelTasksReply:
        """Cancel a package or some of its tasks; return what the master has cancelled.

        Args:
            package_id: The package.
            ranges: The tasks to cancel; None means all tasks.
            only_queued: Whether to cancel only tasks that no worker has taken.
            allowance_s: How long to try, in seconds, instead of the pool's patience.

        Raises:
            CloudparError: The master refuses the request or does not answer, or the session has ended.
        """
        message = CancelTasks(package_id=package_id, ranges=ranges, only_queued=only_queued)
        with self._end:
            return self._connection.call(routes.CANCEL_TASKS, message, allowance_s=allowance_s)

    def interrupt(self, under_way: Iterable[PackageHandle]) -> None:
        """Cancel the packages that have not ended, and print to standard error what they have cost.

        If the request to cancel a package fails, readers of the package get the error of this request, and the printed
        cost does not include this package.
        """
        packages = [handle for handle in under_way if not handle.ended.is_set()]
        if not packages:
            return
        charged_us = 0
        deadline = time.monotonic() + SETTLE_S
        allowance_s = SETTLE_S
        for handle in packages:
            handle.cancelled()
            try:
                handle_us = self.cancel(handle.id, allowance_s=allowance_s).charged_us
            except CloudparError as error:
                handle.lost(error)
                if isinstance(error, MasterUnreachable):
                    allowance_s = AWAY_S  # otherwise a hundred packages would make Ctrl-C wait for five minutes
                continue
            with contextlib.suppress(CloudparError):
                handle_us = max(handle_us, self._settled_us(handle, deadline))
            charged_us += handle_us
        what = f"package {packages[0].id}" if len(packages) == 1 else f"{len(packages)} packages"
        print(  # noqa: T201 - the text is for the person at the terminal
            f"cloudpar: cancelled {what}; {charged_us / 1e6:.3f} s of execution time were charged", file=sys.stderr
        )

    def _settled_us(self, handle: PackageHandle, deadline: float) -> int:
        """Wait until a package's charge is final, or until a deadline of the monotonic clock; return the charge.

        Returns:
            The charge in microseconds; 0 if the master no longer has the package.

        Raises:
            CloudparError: The master refuses the request or does not answer, or the session has ended.
        """
        while True:
            left_s = max(0.0, deadline - time.monotonic())
            cursor = Cursor(package_id=handle.id, cursor=handle.package.cursor)
            message = AwaitTasks(session=f"{self._session}-charge", packages=[cursor], hold_s=min(left_s, HOLD_S))
            with self._end:
                reply = self._connection.call(routes.AWAIT_TASKS, message, hold_s=HOLD_S, allowance_s=left_s)
            if not reply.packages:
                return 0
            status = reply.packages[0]
            if status.settled or not left_s:
                return status.progress.charged_us
            time.sleep(min(left_s, max(reply.retry_after_s, SETTLE_PAUSE_S)))
