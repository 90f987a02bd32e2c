"""Carries out instructions that need the master, in a few threads, and delivers the master's answers as stimuli."""

import os
import queue
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from uuid import uuid4

from msgspec.structs import asdict

from cloudpar_protocol import routes
from cloudpar_protocol.errors import Forbidden, RequestError
from cloudpar_protocol.limits import BULK_ITEMS, LINK_S
from cloudpar_protocol.payloads import Range, Unwritable
from cloudpar_protocol.transport.payload_folder import PayloadFolder
from cloudpar_protocol.transport.retries import Stopped
from cloudpar_protocol.worker_messages import (
    ExtendLeases,
    GiveBack,
    Lease,
    LeaseRef,
    LeaseView,
    Publication,
    PublishResults,
    PublishResultsReply,
    RetrieveTasks,
    Return,
)
from cloudpar_worker.core import instructions as do
from cloudpar_worker.core import stimuli as on
from cloudpar_worker.core.backlog import DOWNLOADS, PUBLISH_JOBS
from cloudpar_worker.core.publishing import requests

from .code_store import code_key
from .master_client import MasterClient, PayloadRefused, TokenRefused
from .payload_store import PayloadStore, TooLarge
from .reach import Reach, warn
from .result_upload import upload_large
from .task_credentials import CredentialStore
from .verifying import SealBroken, verify

Job = Callable[[], on.Stimulus]
_THREADS = {
    "retrieve": 1,
    "peek": 1,
    "fetch": 1,
    "download": DOWNLOADS + 1,
    "publish": PUBLISH_JOBS,
    "upload": PUBLISH_JOBS + 1,
    "extend": 1,
    "give_back": 1,
}
"""How many threads send each kind of request. A thread repeats the transfer of a payload until it succeeds or is
refused, which may take long. Therefore transfers have one more thread than one account may occupy.
"""
_FRESH_LINK_S = LINK_S * 2 / 3
"""A link younger than this, in seconds, cannot have expired. If a request by such a link is refused, the refusal has
another reason.
"""
_PEEK_RETRY_US = 2_000_000
"""The pause after a peek that failed, in microseconds."""
_LEAVE_S = 2.0
"""How long a worker that ends waits for a connection to the master, and then for the answer to its last request, in
seconds.
"""
_REFUSED, _BROKEN = 3, 70
"""The agent's exit codes: _REFUSED if the master refuses the worker token or this worker, _BROKEN if a thread of
MasterIO raises an unexpected error.
"""


class MasterIO:
    """The agent's requests to the master, and its transfers of payloads.

    Each kind of request has threads of its own, so that a held request delays no request of another kind. Only `leave`
    sends its request in the calling thread.

    Args:
        endpoint: The master's URL.
        token: The worker token.
        executors: The number of executors that the worker has.
        deliver: Is called with each stimulus, in the threads of this object.
        folder: The master's payload folder, if one pool has started the master and this worker; otherwise None.
        memory_bytes: The memory limit of one executor.
        credentials: The store for the AWS credentials of tasks; None if this worker must not have any.
        offline: Whether this worker can keep the tasks of an account from the network.
        heard: Is called after each request for work that the master has answered, in a thread of this object.

    Raises:
        ValueError: The endpoint is not a URL, or the token has characters that a token cannot have.
    """

    def __init__(
        self,
        endpoint: str,
        token: str,
        executors: int,
        deliver: Callable[[on.Stimulus], None],
        folder: PayloadFolder | None = None,
        *,
        memory_bytes: int,
        own: bool = False,
        credentials: CredentialStore | None = None,
        offline: bool = False,
        heard: Callable[[], None] = lambda: None,
    ) -> None:
        self.worker_id = uuid4().hex
        self._executors, self._own, self._offline = executors, own, offline
        self._credentials = credentials
        self._deliver, self._heard = deliver, heard
        reach = Reach(lambda stalled_us: deliver(on.RequestFailed(stalled_us)))
        self._retrieval = MasterClient(endpoint, token, reach, folder)
        self._client = MasterClient(endpoint, token, reach, folder)
        self._peeks = MasterClient(endpoint, token, reach)
        self.payloads = PayloadStore(self._client, memory_bytes)
        self._queues: dict[str, queue.SimpleQueue[Job]] = {kind: queue.SimpleQueue() for kind in _THREADS}
        self._arrived_at: dict[str, float] = {}
        # All threads start before the first task. Later, tasks may have used up all processes of the machine or of the
        # container. Then a thread could not start, and the agent would end.
        for kind, number in _THREADS.items():
            for _ in range(number):
                threading.Thread(target=self._work, args=(self._queues[kind],), name=kind, daemon=True).start()

    def _enqueue(self, kind: str, job: Job) -> None:
        self._queues[kind].put(job)

    def _work(self, jobs: "queue.SimpleQueue[Job]") -> None:
        while True:
            try:
                stimulus = jobs.get()()
            except Stopped:
                continue
            except TokenRefused as error:
                warn(f"{error}; a worker needs the deployment's worker token")
                os._exit(_REFUSED)
            except Exception:  # noqa: BLE001 - a bug in this class: the agent would renew leases and never publish
                traceback.print_exc()
                os._exit(_BROKEN)
            self._deliver(stimulus)

    def retrieve(self, wanted: do.Retrieve) -> None:
        """Request chunks or, for a peek, an answer that only says whether chunks wait.

        The master may hold the request.
        """
        request = RetrieveTasks(
            attempt_id=uuid4().hex, worker_id=self.worker_id, executors=self._executors, own=self._own,
            credentials=self._credentials is not None, offline=self._offline, **asdict(wanted),
        )  # fmt: skip
        if wanted.peek:
            self._enqueue("peek", lambda: self._peek(request))
        elif wanted.besides:
            self._enqueue("fetch", lambda: self._retrieve(self._client, request))
        else:
            self._enqueue("retrieve", lambda: self._retrieve(self._retrieval, request))

    def _retrieve(self, client: MasterClient, request: RetrieveTasks) -> on.Stimulus:
        besides = bool(request.besides)
        started_at = time.monotonic()
        try:
            reply = client.call(routes.RETRIEVE_TASKS, request)
        except Stopped:
            return on.Retrieved([], besides=besides)
        except Forbidden as error:
            warn(f"{error}")
            os._exit(_REFUSED)
        except RequestError as error:
            warn(f"the master refused to hand out tasks: {error}")
            return on.Retrieved([], 2_000_000, besides=besides)
        self._heard()
        elapsed_us = int((time.monotonic() - started_at) * 1e6)
        # While the master held the request, there was no chunk. So the time of the hold does not count as a cost of the
        # request.
        cost_us = min(elapsed_us, max((lease.wait_us for lease in reply.leases), default=0))
        for lease in reply.leases:
            self._arrived_at[lease.lease_id] = time.monotonic()
        if self._credentials is not None:
            self._credentials.take(lease.credentials for lease in reply.leases)
        return on.Retrieved(
            reply.leases,
            int(reply.retry_after_s * 1e6),
            cost_us,
            _broken(reply.leases),
            besides=besides,
            holds=reply.holds,
            waiting=reply.waiting,
        )

    def _peek(self, request: RetrieveTasks) -> on.Stimulus:
        try:
            reply = self._peeks.call(routes.RETRIEVE_TASKS, request, repeat=False)
        except (RequestError, Stopped):
            return on.Peeked(waiting=False, retry_after_us=_PEEK_RETRY_US)
        return on.Peeked(reply.waiting, int(reply.retry_after_s * 1e6))

    def abandon_retrieval(self) -> None:
        """End retrievals and peeks for good. A fetch (a retrieval that names packages in `besides`) continues."""
        self._retrieval.hang_up()
        self._peeks.hang_up()

    def download(self, lease: Lease, tasks: Range) -> None:
        """Download a lease's code and, in order, the data of as many of these tasks as one download can bring."""

        def job() -> on.Stimulus:
            started_at = time.monotonic()
            try:
                here, item_bytes = self.payloads.fetch(lease, tasks)
            except TooLarge as large:
                return on.TooLarge(lease.lease_id, large.tasks, large.payload_bytes)
            except SealBroken as broken:
                return on.DownloadFailed(lease.lease_id, stale=False, broken=str(broken))
            except PayloadRefused as refused:
                stale = time.monotonic() - self._arrived_at.get(lease.lease_id, 0.0) > _FRESH_LINK_S
                warn(f"cannot download the payload of package {lease.package_id}: {refused}")
                return on.DownloadFailed(lease.lease_id, stale, why=str(refused))
            except (Stopped, TokenRefused):
                raise
            except Exception as error:  # noqa: BLE001 - the client chooses the payload, which must not end the agent
                traceback.print_exc()
                warn(f"cannot read the payload of package {lease.package_id}: {error!r}")
                return on.DownloadFailed(lease.lease_id, stale=False, why=repr(error))
            return on.Downloaded(lease.lease_id, here, item_bytes, int((time.monotonic() - started_at) * 1e6))

        self._enqueue("download", job)

    def forget(self, lease_id: str, others: Iterable[Lease]) -> None:
        """Drop the data of a lease. If too much task code is kept, drop code that no lease in `others` needs."""
        self._arrived_at.pop(lease_id, None)
        self.payloads.forget(lease_id)
        others = list(others)
        self.payloads.codes.trim({code_key(lease) for lease in others})
        if self._credentials is not None:
            self._credentials.keep({lease.package_id for lease in others})

    def publish(
        self, publications: list[Publication], others: list[LeaseRef] | None, uploads_for: str | None = None
    ) -> None:
        """Send publications in as many requests as needed. For the arguments, see the instruction Publish.

        Large results are uploaded before the request that refers to them.
        """

        def job() -> on.Stimulus:
            started_at = time.monotonic()
            views: dict[str, LeaseView] = {}
            hungry = waiting = False
            for part in requests(publications):
                for reply in self._publish(part, others):
                    views.update({view.lease_id: view for view in reply.leases})
                    hungry, waiting = hungry or reply.hungry, waiting or reply.waiting
            lease_ids = list(dict.fromkeys([made.lease_id for made in publications]))
            return on.Published(
                lease_ids, list(views.values()), hungry, int((time.monotonic() - started_at) * 1e6), waiting
            )

        self._enqueue("publish" if uploads_for is None else "upload", job)

    def _publish(self, part: list[Publication], others: list[LeaseRef] | None) -> list[PublishResultsReply]:
        try:
            # The blobs are uploaded first, because a client may download them as soon as the master has the
            # publication.
            made = upload_large(self._client, part, partial(self._not_written, part))
            request = PublishResults(
                worker_id=self.worker_id, executors=self._executors, publications=made, seals=True, others=others
            )
            return [self._client.call(routes.PUBLISH_RESULTS, request)]
        except (Stopped, TokenRefused):
            raise
        except Exception as error:  # noqa: BLE001 - task code chooses the results, which must not end the agent
            if len(part) > 1:  # one bad publication must not take the others with it
                return [reply for publication in part for reply in self._publish([publication], others)]
            if isinstance(error, RequestError):
                warn(f"the master refused results of package {part[0].package_id}: {error}")
            else:
                traceback.print_exc()
                warn(f"cannot publish results of package {part[0].package_id}: {error!r}")
            return []

    def _not_written(self, part: list[Publication], made: Publication, unwritable: Unwritable) -> None:
        """Tell the master why publications are late, and renew the leases of these publications.

        The agent sends no beats for a lease whose last publication is under way. Without this renewal the master would
        hand out the tasks again while their results wait for space on the disk.

        Raises:
            PayloadRefused: The master no longer wants the results that are being written, so the upload ends. Otherwise
                results that are too large for the disk would occupy this thread as long as the worker runs.
        """
        leases = [LeaseRef(**made.identity()) for made in part[:BULK_ITEMS]]
        request = ExtendLeases(worker_id=self.worker_id, leases=leases, unwritable=unwritable)
        with suppress(RequestError, Stopped):
            views = self._client.call(routes.EXTEND_LEASES, request, repeat=False).leases
            if any(view.lease_id == made.lease_id and view.state != "wanted" for view in views):
                raise PayloadRefused(f"its tasks are no longer wanted, and {unwritable.why}")

    def extend(self, leases: list[LeaseRef]) -> None:
        """Renew leases. A request that fails is not repeated, because the next beat comes soon anyway."""

        def job() -> on.Stimulus:
            views: list[LeaseView] = []
            hungry = waiting = False
            for first in range(0, len(leases), BULK_ITEMS):
                some = leases[first : first + BULK_ITEMS]
                store = self._credentials
                renew = store is not None and store.expire_soon({ref.package_id for ref in some})
                request = ExtendLeases(worker_id=self.worker_id, leases=some, credentials=renew)
                try:
                    reply = self._client.call(routes.EXTEND_LEASES, request, repeat=False)
                except (RequestError, Stopped):
                    continue
                if store is not None:
                    store.take(reply.credentials)
                views += reply.leases
                hungry, waiting = hungry or reply.hungry, waiting or reply.waiting
            return on.Extended(views, hungry, waiting)

        self._enqueue("extend", job)

    def give_back(self, returns: list[Return]) -> None:
        """Give back tasks that no executor has. If the master refuses for good, only log the refusal."""

        def job() -> on.Stimulus:
            try:
                self._client.call(routes.GIVE_BACK, GiveBack(worker_id=self.worker_id, returns=returns))
            except RequestError as error:
                warn(f"the master refused tasks given back: {error}")
            return on.GivenBack([item.lease_id for item in returns])

        self._enqueue("give_back", job)

    def leave(self) -> None:
        """Tell the master that this worker ends. If this single attempt fails, the master notices the end later."""
        request = GiveBack(worker_id=self.worker_id, returns=[], leaving=True)
        with suppress(RequestError, Stopped, TokenRefused):  # a master of an earlier release refuses an empty give-back
            self._client.call(routes.GIVE_BACK, request, repeat=False, answer_s=_LEAVE_S)


def _broken(leases: list[Lease]) -> dict[str, str]:
    """Return, by lease id, a text about the payload in the lease that does not match its hash or seal.

    Leases whose payloads all match are left out.
    """
    found: dict[str, str] = {}
    for lease in leases:
        try:
            verify(lease)
        except SealBroken as broken:
            found[lease.lease_id] = str(broken)
        except Exception as error:  # noqa: BLE001 - the client chooses the payload, which must not end the agent
            traceback.print_exc()
            found[lease.lease_id] = f"its payload cannot be verified: {error!r}"
    return found
