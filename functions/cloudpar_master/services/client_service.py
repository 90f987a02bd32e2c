"""Starts, awaits, cancels and acknowledges packages for clients."""

import hashlib
from collections.abc import Sequence

from msgspec.structs import replace

from cloudpar_master.core import pacing, planning
from cloudpar_master.core.events import Acknowledged, Broken, CancelAsked
from cloudpar_master.core.fleet_size import Work, work_of
from cloudpar_master.core.fold import fold
from cloudpar_master.core.head import CANCELLED_RANGES, Head, Spec, size_of
from cloudpar_master.ports import AccountRecord, Opened, Running, Unreadable
from cloudpar_protocol import codec, limits, ranges, seals
from cloudpar_protocol.client_messages import (
    Acknowledge,
    AcknowledgeReply,
    AwaitTasks,
    AwaitTasksReply,
    CancelTasks,
    CancelTasksReply,
    Cursor,
    FleetStatus,
    ListPackages,
    ListPackagesReply,
    PackageStatus,
    PackageSummary,
    PreparedUpload,
    PrepareUploads,
    PrepareUploadsReply,
    StartTasks,
    StartTasksReply,
    Upload,
)
from cloudpar_protocol.errors import (
    BadRequest,
    IdempotencyConflict,
    NotFound,
    QuotaExhausted,
    RequestError,
    TooLarge,
    Unavailable,
)
from cloudpar_protocol.payloads import BlobData, Unfit

from .account_limits import check_fits, check_room
from .backend import Backend
from .closed_packages import ClosedPackages, OpenCount
from .folding import Folding
from .formatting import moment, span
from .isolation import each
from .package_list import LISTED, listed
from .placement import Placement
from .result_pages import Results, read_results, reload_at_end
from .steps import Steps, finish
from .stored_bytes import StoredBytes
from .submission import check_owner, check_submission
from .upload_links import UploadLinks

CANCEL_ALL = "cancel the whole package instead"

LONELY_S = 4.0
"""If a running package is older than this many seconds, and no live worker has published its results lately, an await
of the package also reports which workers can run it, and the state of the fleet."""


class ClientService:
    """The routes of users."""

    def __init__(self, backend: Backend, stored: StoredBytes | None = None) -> None:
        self._backend = backend
        self._folding = Folding(backend)
        self._closed = ClosedPackages(backend, self._folding)
        self._placement = Placement(backend)
        self._stored = stored or StoredBytes(backend)

    def prepare_uploads(self, account: AccountRecord, request: PrepareUploads) -> PrepareUploadsReply:
        """Make links for payloads that are too large to travel inline.

        Raises:
            BadRequest: Task code comes without its hash, or the checksums of parts do not fit the size.
            TooLarge: A payload exceeds a limit of the protocol or of the account.
            RateLimited: The account stores too much.
            Unavailable: The master's disk is almost full.
            Forbidden: The request names task data by a key that this method cannot have made for this account.
        """
        links, promised = UploadLinks(self._backend.blobs), list[str]()
        try:
            uploads = [self._prepare(account, upload, links, promised) for upload in request.uploads]
        except RequestError:
            # Each repetition of a refused request names new keys for its data. If they kept their room, the account
            # would soon be full of uploads that never come.
            self._stored.take_back(account.account_id, promised)
            raise
        return PrepareUploadsReply(uploads=uploads)

    def _prepare(
        self, account: AccountRecord, upload: Upload, links: UploadLinks, promised: list[str]
    ) -> PreparedUpload:
        """Make the links of one upload. Add the keys for which it keeps room to `promised`."""
        if upload.size > limits.BLOB_BYTES:
            size = f"{upload.size:,} bytes of task {upload.kind} is over the limit of {limits.BLOB_BYTES:,}"
            raise TooLarge(f"{size}: split the work into several maps, or let tasks read their data from storage")
        if upload.kind == "data":
            key = upload.key or f"data/{account.account_id}/{self._backend.ids.fresh()}"
            check_owner(account, key, "data")
            check_fits(account, 1, upload.size, self._backend.policy)
        elif upload.hash is None:
            raise BadRequest("an upload of task code needs its SHA-256 in `hash`")
        else:
            key = f"code/{account.account_id}/{upload.hash}"
            if self._backend.blobs.exists(key, promise=True):
                return PreparedUpload(key=key)
        promised += self._stored.promise(account, key, upload.size)
        link, parts = links.make(key, upload)
        if parts is not None and upload.upload_id is None:
            # Each upload in parts that was started takes room of its own, although many such uploads may have the same
            # key.
            promised += self._stored.promise(account, f"{key}#{parts.upload_id}", upload.size)
        return PreparedUpload(key=key, link=link, parts=parts)

    def start_tasks(self, account: AccountRecord, request: StartTasks) -> StartTasksReply:
        """Start a package. The call makes one head and at most one window of chunks, however many tasks there are.

        A repeated request succeeds even if meanwhile the quota is spent, too much is running, or its payload is gone.

        Raises:
            BadRequest, Forbidden: See `check_submission`.
            NotFound: The package's task code or task data was not uploaded.
            TooLarge: The package exceeds a limit of the protocol or of the account.
            QuotaExhausted: The account's whole quota is spent.
            RateLimited: The account has too much running, or stores too much.
            Unavailable: The master's disk is almost full.
            IdempotencyConflict: The idempotency key was used for another package.
        """
        on = self._backend
        check_submission(account, request)
        data_bytes = size_of(request.data)
        check_fits(account, request.n, data_bytes, on.policy)
        package_id = seals.package_id(account.account_id, request.idempotency_key, sealed=request.seal is not None)
        if self._used_up(account) and on.packages.spec(package_id) is None:
            used = f"account {account.name!r} has used its {span(account.granted_us)} of compute time"
            raise QuotaExhausted(f"{used}: ask the operator to grant more (cloudpar account grant)")
        now = on.clock.now()
        spec = Spec(
            package_id=package_id,
            account_id=account.account_id,
            request_hash=hashlib.sha256(codec.encode(replace(request, session="-"))).hexdigest(),
            start=request,
            started_at=now,
        )
        running = on.packages.running(account.account_id)
        self._check_room(account, spec, running)
        head = fold(Head.first(spec, self._first_window(account, running, request)), [], now, on.policy).head
        stored = on.packages.create(spec, head)
        if stored.request_hash != spec.request_hash:
            text = "this idempotency key was used before with another package: make a new key for each package"
            raise IdempotencyConflict(text)
        if stored is spec:
            self._stored.started(account.account_id, head.counted_bytes)
            self._folding.start(head)
            on.fleet.grow([work_of(head)])
        return StartTasksReply(package_id=package_id)

    def _check_room(self, account: AccountRecord, spec: Spec, running: Running) -> None:
        """Check that a package may start now, unless it has started already.

        Raises:
            NotFound, TooLarge, RateLimited, Unavailable: See `start_tasks`.
        """
        request, first = spec.start, Head.first(spec, 0)
        # This call comes first, because it counts as a use of the upload: even if the start has to wait, the upload is
        # not removed as unused.
        missing = self._missing(request)
        try:
            check_room(account, request, first.data_bytes, running, self._backend.policy)
            self._stored.check_start(account, first.counted_bytes)
            if missing is not None:
                text = f"nothing was uploaded as {missing!r}: upload it by the link of prepare_uploads, then start"
                raise NotFound(text)
        except RequestError:
            # The client repeats a start whose answer was lost. By then the package itself may have used up the limit.
            if self._backend.packages.spec(spec.package_id) is None:
                raise

    def _missing(self, request: StartTasks) -> str | None:
        """Return the key of a blob of the package that was not uploaded; None if there is none.

        No worker could run a package without its task code and task data. The package would hold compute time of its
        account, and each worker would lose a lease with it. Inline payloads need no check, which costs a request on
        AWS.
        """
        blobs = [request.code.blob, request.data.blob if isinstance(request.data, BlobData) else None]
        missing = [blob.key for blob in blobs if blob is not None and not self._backend.blobs.exists(blob.key)]
        return missing[0] if missing else None

    def _used_up(self, account: AccountRecord) -> bool:
        """Whether all of the quota is spent.

        If the given account has no quota left, the account is read again, because the given one may lack a recent
        grant.
        """
        if account.granted_us > account.spent_us:
            return False
        now = self._backend.accounts.get(account.account_id) or account
        return now.granted_us <= now.spent_us

    def _first_window(self, account: AccountRecord, running: Running, request: StartTasks) -> int:
        """Return the first window of a new package; 0: the package starts closed.

        An account may have more open packages when it starts a small one (planning.SMALL_PACKAGE), so that small
        packages seldom wait for large ones.
        """
        policy = self._backend.policy
        most = policy.open_small_packages if request.n <= planning.SMALL_PACKAGE else policy.open_packages
        if running.packages < most or not self._backend.queue.waiting():
            return planning.first_window(request.n, policy)
        # A task waits for a nested package, and that task's executor does not count as idle. If all nested packages
        # started closed, they might therefore never open.
        others = OpenCount(self._backend.packages)
        return 1 if request.depth and others.has_few(account.account_id, request.depth, most) else 0

    def await_tasks(self, account: AccountRecord, request: AwaitTasks) -> AwaitTasksReply:
        """Return the news of these packages, in bulk, up to the size of one body.

        Raises:
            Exception: This error of a package, if no other package has news.
        """
        statuses: list[PackageStatus] = []
        missing: dict[str, str] = {}
        delays: list[float] = []
        room = limits.BODY_BYTES * 3 // 4
        lonely: list[Work] = []
        others = OpenCount(self._backend.packages)

        def look(cursor: Cursor) -> None:
            nonlocal room
            opened = self._visible(account, cursor.package_id)
            if opened is None:
                text = "no such package for this token: it never was, or it was deleted over a day ago"
                missing[cursor.package_id] = text
                return
            head, placement = self._placement.attended(self._closed.open_if_few(opened.head, others)), None
            if self._waits_for_workers(head):
                head = self._placement.attended(self._placement.decided(head))
                lonely.append(work_of(head))
                placement = self._placement.view(head)
            # Half a body is room for any page. With less room a page could make the answer too large.
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
        self._backend.fleet.grow(lonely)  # the start of these packages may have failed to do so
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
            set_aside=_set_aside(head),
        ), page.size_bytes

    def cancel_tasks(self, account: AccountRecord | None, request: CancelTasks) -> CancelTasksReply:
        """Cancel a package, or some of its tasks. After the reply, none of the cancelled tasks is handed out.

        If `account` is None, the caller is an operator, who may cancel any package.

        Raises:
            NotFound: There is no such package, or it belongs to another account.
            BadRequest: The request contradicts itself, or its tasks are too scattered.
            Unavailable: The package is too busy now, or a master of a newer release has written its head. The
                cancellation is stored, and a later fold carries it out.
        """
        opened = self._visible(account, request.package_id)
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
        opened = self._visible(account, package_id)
        if opened is not None and opened.head.life.acknowledged_at is None:
            self._folding.confirm(package_id, "acknowledge", Acknowledged(), opened)

    def list_packages(self, account: AccountRecord | None, request: ListPackages) -> Steps[ListPackagesReply]:
        """List the packages of an account (None: of all accounts) in steps, newest first, with their charges."""
        if request.package_id is not None:
            opened = self._visible(account, request.package_id)
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
            set_aside=_set_aside(head),
        )

    def _visible(self, account: AccountRecord | None, package_id: str) -> Opened | None:
        """Return a package as it is now; None if it does not exist, or does not belong to `account`."""
        opened = self._folding.look(package_id)
        theirs = opened is not None and account is not None and opened.head.account_id != account.account_id
        return None if theirs else opened


def _set_aside(head: Head) -> list[Unfit]:
    """Return the workers that are set aside for a package, for its client.

    If each live worker lacks something, the workers run the tasks nevertheless (`run_anyway`). Then the list is empty,
    because the errors of the tasks say what the workers lack.
    """
    return [] if head.life.run_anyway else head.life.set_aside
