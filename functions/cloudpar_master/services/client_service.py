"""Starts, awaits, cancels, acknowledges and lists packages for clients."""

from cloudpar_master.core.events import Acknowledged, CancelAsked
from cloudpar_master.core.head import CANCELLED_RANGES, Head
from cloudpar_master.ports import AccountRecord
from cloudpar_protocol import ranges
from cloudpar_protocol.client_messages import (
    Acknowledge,
    AcknowledgeReply,
    AwaitTasks,
    AwaitTasksReply,
    CancelTasks,
    CancelTasksReply,
    ListPackages,
    ListPackagesReply,
    PackageSummary,
    PrepareUploads,
    PrepareUploadsReply,
    StartTasks,
    StartTasksReply,
)
from cloudpar_protocol.errors import BadRequest, NotFound

from .backend import Backend
from .closed_packages import ClosedPackages
from .folding import Folding
from .isolation import each
from .package_awaits import PackageAwaits
from .package_list import LISTED, listed
from .package_starts import PackageStarts
from .placement import Placement
from .steps import Steps
from .stored_bytes import StoredBytes
from .uploads import Uploads

CANCEL_ALL = "cancel the whole package instead"


class ClientService:
    """The routes of users."""

    def __init__(self, backend: Backend, stored: StoredBytes | None = None, folding: Folding | None = None) -> None:
        self._backend = backend
        self._folding = folding or Folding(backend)
        self._closed = ClosedPackages(backend, self._folding)
        self._placement = Placement(backend, self._folding)
        stored = stored or StoredBytes(backend)
        self._uploads = Uploads(backend, stored)
        self._starts = PackageStarts(backend, self._folding, stored)
        self._awaits = PackageAwaits(backend, self._folding, self._closed, self._placement)

    def prepare_uploads(self, account: AccountRecord, request: PrepareUploads) -> PrepareUploadsReply:
        """Make links for payloads that are too large to travel inline.

        Raises:
            BadRequest, TooLarge, RateLimited, Unavailable, Forbidden: See `Uploads.prepare`.
        """
        return self._uploads.prepare(account, request)

    def start_tasks(self, account: AccountRecord, request: StartTasks) -> StartTasksReply:
        """Start a package.

        Raises:
            BadRequest, Forbidden, NotFound, TooLarge, QuotaExhausted, RateLimited, Unavailable, IdempotencyConflict:
                See `PackageStarts.start`.
        """
        return self._starts.start(account, request)

    def await_tasks(self, account: AccountRecord, request: AwaitTasks) -> AwaitTasksReply:
        """Return the news of these packages.

        Raises:
            Exception: See `PackageAwaits.answer`.
        """
        return self._awaits.answer(account, request)

    def cancel_tasks(self, account: AccountRecord | None, request: CancelTasks) -> CancelTasksReply:
        """Cancel a package, or some of its tasks. After the reply, none of the cancelled tasks is handed out.

        If `account` is None, the caller is an operator, who may cancel any package.

        Raises:
            NotFound: There is no such package, or it belongs to another account.
            BadRequest: The request contradicts itself, or its tasks form too many separate ranges.
            Unavailable: The package is too busy now, or a master of a newer release has written its head. The
                cancellation is stored, and a later fold carries it out.
        """
        opened = self._folding.visible(account, request.package_id)
        if opened is None:
            raise NotFound(f"no package {request.package_id} is visible to this token")
        head = opened.head
        if request.ranges is not None and request.only_queued:
            raise BadRequest("`ranges` and `only_queued` exclude each other: send one of them, or neither")
        asked = ranges.union(request.ranges) if request.ranges is not None else None
        if asked and len(head.tasks.cancelled) + len(asked) > CANCELLED_RANGES:
            raise BadRequest(f"tasks in over {CANCELLED_RANGES} places were cancelled: {CANCEL_ALL}")
        before = head.tasks.cancelled
        by = f"its account {account.name!r}" if account else "the operator"
        event = CancelAsked(ranges=asked, only_queued=request.only_queued, message=f"cancelled by {by}")
        if not head.life.ended:
            head = self._folding.confirm(head.package_id, f"c#{self._backend.ids.fresh()}", event, opened) or head
            if head.life.ended:
                self._closed.open_next(head)
        gone = head.tasks.cancelled
        if head.life.state == "cancelled":
            gone = ranges.union(head.tasks.stopping, gone, [(head.tasks.cursor, head.tasks.count)])
        if asked is not None:
            cancelled = ranges.intersect(asked, gone)
            if ranges.subtract(ranges.intersect(asked, head.unfinished), head.tasks.cancelled):
                raise BadRequest(f"these tasks are too scattered among those that run: {CANCEL_ALL}, or try later")
        elif request.only_queued:
            cancelled = ranges.subtract(head.tasks.cancelled, before)
        else:
            cancelled = gone if head.life.state == "cancelled" else []
        return CancelTasksReply(state=head.client_state, cancelled=cancelled, charged_us=head.quota.charged_us)

    def acknowledge(self, account: AccountRecord, request: Acknowledge) -> Steps[AcknowledgeReply]:
        """Acknowledge packages in steps, so that their storage is freed. A running package is cancelled first.

        Packages that do not exist or belong to another account are ignored.

        Raises:
            Unavailable: A package is too busy now, or a master of a newer release has written its head. The client
                should repeat the request.
        """
        yield from each(request.package_ids, lambda package_id: self._acknowledge(account, package_id))
        return AcknowledgeReply()

    def _acknowledge(self, account: AccountRecord, package_id: str) -> None:
        opened = self._folding.visible(account, package_id)
        if opened is not None and opened.head.life.acknowledged_at is None:
            self._folding.confirm(package_id, "acknowledge", Acknowledged(), opened)

    def list_packages(self, account: AccountRecord | None, request: ListPackages) -> Steps[ListPackagesReply]:
        """List the packages of an account (None: of all accounts) in steps, newest first, with their charges."""
        if request.package_id is not None:
            opened = self._folding.visible(account, request.package_id)
            found = [] if opened is None else [opened.head]
        else:
            found = yield from listed(self._backend.packages, account.account_id if account else None, request.limit)
        summaries: list[PackageSummary] = []
        fleet: dict[int, int] = {}  # a worker that serves several packages counts once
        for number, each_found in enumerate(found, start=1):
            head = self._placement.attended(each_found)
            summaries.append(self._summary(head))
            if not head.life.ended:
                fleet |= {number: member.executors for number, member in head.pace.fleet.items()}
            if number % LISTED == 0:
                yield
        return ListPackagesReply(packages=summaries, executors=sum(fleet.values()))

    def _summary(self, head: Head) -> PackageSummary:
        date = self._backend.clock.date
        return PackageSummary(
            package_id=head.package_id,
            account_id=head.account_id,
            name=head.name,
            state=head.client_state,
            started_at=date(head.started_at),
            ended_at=None if head.life.ended_at is None else date(head.life.ended_at),
            progress=head.progress(),
            reason=head.life.reason,
            message=head.life.message,
            set_aside=head.client_set_aside,
        )
