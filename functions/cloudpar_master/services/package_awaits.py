"""Answers clients that wait for the results of packages."""

from collections.abc import Sequence

from msgspec.structs import replace

from cloudpar_master.core import pacing
from cloudpar_master.core.events import Broken
from cloudpar_master.core.fleet_size import Work, work_of
from cloudpar_master.core.head import Head
from cloudpar_master.ports import AccountRecord, Unreadable
from cloudpar_protocol import limits
from cloudpar_protocol.client_messages import AwaitTasks, AwaitTasksReply, Cursor, FleetStatus, PackageStatus
from cloudpar_protocol.errors import Unavailable

from .backend import Backend
from .closed_packages import ClosedPackages, OpenCount
from .folding import Folding
from .formatting import moment
from .isolation import each
from .placement import Placement
from .result_pages import Results, read_results, reload_at_end
from .steps import finish

LONELY_S = 4.0
"""If a running package is older than this many seconds, and no live worker has published its results lately, an await
of the package also reports which workers can run it, and the state of the fleet."""


class PackageAwaits:
    """Reads the news of packages. An await also opens the closed packages that it names, while few others are open."""

    def __init__(self, backend: Backend, folding: Folding, closed: ClosedPackages, placement: Placement) -> None:
        self._backend = backend
        self._folding = folding
        self._closed = closed
        self._placement = placement

    def answer(self, account: AccountRecord, request: AwaitTasks) -> AwaitTasksReply:
        """Return the news of these packages, in bulk, up to the size of one body.

        Raises:
            Exception: One of the packages raised this error, and no other package has news.
        """
        statuses: list[PackageStatus] = []
        missing: dict[str, str] = {}
        delays: list[float] = []
        room = limits.BODY_BYTES * 3 // 4
        lonely: list[Work] = []
        others = OpenCount(self._backend.packages)

        def look(cursor: Cursor) -> None:
            nonlocal room
            opened = self._folding.visible(account, cursor.package_id)
            if opened is None:
                text = "no such package for this token: it never was, or it was deleted over a day ago"
                missing[cursor.package_id] = text
                return
            head, placement = self._placement.attended(self._closed.open_if_few(opened.head, others)), None
            if self._waits_for_workers(head):
                head = self._placement.attended(self._placement.decided(head))
                lonely.append(work_of(head, self._backend.policy))
                placement = self._placement.view(head)
            # A page may take half a body. If less room is left, read no page: it could make the answer too large.
            status, size = self._status(head, cursor, room if room >= limits.BODY_BYTES // 2 else 0)
            room -= size
            statuses.append(status if placement is None else replace(status, placement=placement))
            news = status.more or status.state != "running"
            if self._backend.policy.holds_requests:
                news = news or bool(status.results) or status.cursor != cursor.cursor
            delays.append(0.0 if news else pacing.client_delay_s(head, self._backend.clock.now(), self._backend.policy))

        try:
            finish(each(request.packages, look))
        except Exception:  # an error of one package must not keep the client from the news of the others
            if not missing and all(delays):
                raise
        delay = 0.0 if missing else min(delays, default=0.0)
        return AwaitTasksReply(
            packages=statuses, missing=missing, retry_after_s=delay, fleet=self._status_of_fleet(lonely)
        )

    def _status_of_fleet(self, lonely: Sequence[Work]) -> FleetStatus | None:
        """Return the state of the fleet if some packages wait for its workers (`lonely`); otherwise None."""
        if not lonely:
            return None
        self._backend.fleet.grow(lonely)  # the call at the start of these packages may have failed
        return self._backend.fleet.status()

    def _waits_for_workers(self, head: Head) -> bool:
        age_s = self._backend.clock.now() - head.started_at
        return not head.life.ended and not head.pace.executors and age_s > LONELY_S

    def _read(self, head: Head, cursor: Cursor, room: int) -> tuple[Head, Results]:
        """Read the next results of a package. Returns the results, and the head to which they belong."""
        nothing = Results([], cursor.cursor, more=False, size_bytes=0)
        if head.life.unreadable:
            return head, nothing
        try:
            page = read_results(self._backend.packages, head, cursor.cursor, room)
        except Unreadable as damaged:
            # Without this event the state "completed" would be reported, although results are missing.
            broken = Broken(message=str(damaged), results=True)
            newest = self._folding.confirm(head.package_id, f"broken#{cursor.cursor}", broken)
            if newest is None:  # `head` would say that the package has completed; the next request finds nothing
                raise Unavailable(f"package {head.package_id} was removed meanwhile: try again", 1.0) from damaged
            return newest, nothing
        newest = reload_at_end(self._backend.packages, head, cursor.cursor, page, self._backend.policy)
        return (newest, nothing) if newest.life.unreadable else (head, page)

    def _status(self, head: Head, cursor: Cursor, room: int) -> tuple[PackageStatus, int]:
        head, page = self._read(head, cursor, room)
        life, gone = head.life, head.life.unreadable
        keys = {result.blob.key for result in page.results if result.blob is not None}
        message = life.message
        if gone:
            at = moment(self._backend.clock.date(life.acknowledged_at or life.deleted_at or head.now))
            message = f"deleted at {at}: {'acknowledged by its client' if life.acknowledged_at else life.message}"
        return PackageStatus(
            package_id=head.package_id,
            state="expired" if gone else head.client_state,
            cursor=page.cursor,
            more=page.more,
            results=page.results,
            links={key: self._backend.blobs.get_link(key) for key in keys},
            progress=head.progress(),
            failed=head.tasks.failed,
            cancelled=head.tasks.cancelled,
            reason=life.reason,
            message=message,
            settled=life.settled,
            codec=head.codec,
            set_aside=head.client_set_aside,
        ), page.size_bytes
