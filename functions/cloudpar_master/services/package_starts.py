"""Starts packages for clients."""

import hashlib

from msgspec.structs import replace

from cloudpar_master.core import planning
from cloudpar_master.core.fleet_size import work_of
from cloudpar_master.core.fold import fold
from cloudpar_master.core.head import Head, Spec, size_of
from cloudpar_master.ports import AccountRecord, Running
from cloudpar_protocol import codec, seals
from cloudpar_protocol.client_messages import StartTasks, StartTasksReply
from cloudpar_protocol.errors import IdempotencyConflict, NotFound, QuotaExhausted, RequestError
from cloudpar_protocol.payloads import BlobData

from .account_limits import check_fits, check_room
from .backend import Backend
from .closed_packages import OpenCount
from .folding import Folding
from .formatting import span
from .stored_bytes import StoredBytes
from .submission import check_submission


class PackageStarts:
    """Checks a package and starts it, open or closed."""

    def __init__(self, backend: Backend, folding: Folding, stored: StoredBytes) -> None:
        self._backend = backend
        self._folding = folding
        self._stored = stored

    def start(self, account: AccountRecord, request: StartTasks) -> StartTasksReply:
        """Start a package. The call makes one head and at most one window of chunks, however many tasks there are.

        A repeated request succeeds even if meanwhile the quota is spent, too much is running, or the payload is gone.

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
            on.fleet.grow([work_of(head, on.policy)])
        return StartTasksReply(package_id=package_id)

    def _check_room(self, account: AccountRecord, spec: Spec, running: Running) -> None:
        """Check that a package may start now, unless it has started already.

        Raises:
            NotFound, TooLarge, RateLimited, Unavailable: See `start`.
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
        """Return the key of a blob of the package that was not uploaded; None if all were uploaded.

        No worker could run a package without its task code and task data. The package would hold compute time of its
        account, and each worker would lease a chunk of it before the worker is set aside. Inline payloads need no
        check, and on AWS a check costs a request.
        """
        blobs = [request.code.blob, request.data.blob if isinstance(request.data, BlobData) else None]
        missing = [blob.key for blob in blobs if blob is not None and not self._backend.blobs.exists(blob.key)]
        return missing[0] if missing else None

    def _used_up(self, account: AccountRecord) -> bool:
        """Whether all of the quota is spent.

        If the given record of the account has no quota left, read the account again: the record may lack a recent
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
