"""The calls of workers: retrieve tasks, prepare and publish results, extend leases, give tasks back; each in bulk."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from msgspec.structs import replace

from cloudpar_master.core.events import GaveBack, Published
from cloudpar_master.core.head import Head, number_of
from cloudpar_master.ports import Unreadable
from cloudpar_protocol.errors import BadRequest, Unavailable
from cloudpar_protocol.payloads import Range, TaskResult
from cloudpar_protocol.seals import Seals, is_sealed
from cloudpar_protocol.worker_messages import (
    ExtendLeases,
    ExtendLeasesReply,
    GiveBack,
    GiveBackReply,
    LeaseRef,
    LeaseView,
    PreparedResult,
    PrepareResults,
    PrepareResultsReply,
    Publication,
    PublishResults,
    PublishResultsReply,
    RetrieveTasks,
    RetrieveTasksReply,
    Return,
    TaskCredentials,
)

from .account_keys import AccountKeys
from .backend import Backend
from .closed_packages import ClosedPackages
from .folding import Folding, Item, parts
from .idle_workers import IdleWorkers
from .isolation import each, gathered
from .leases import Leases
from .placement import Placement
from .receiver import Receiver
from .retrieval import Retrieval
from .steps import Steps, finish
from .submission import is_name
from .upload_links import UploadLinks


class WorkerService:
    """The routes of workers."""

    def __init__(self, backend: Backend, folding: Folding | None = None) -> None:
        self._backend = backend
        self._folding = folding or Folding(backend)
        self._closed = ClosedPackages(backend, self._folding)
        self._idle = IdleWorkers()
        self._placement = Placement(backend, self._folding)
        self._keys = AccountKeys(backend)
        self._leases = Leases(backend, self._keys)
        receiver = Receiver(backend, self._folding, self._placement, self._leases)
        self._retrieval = Retrieval(backend, self._folding, self._placement, receiver, self._idle)

    def retrieve_tasks(self, request: RetrieveTasks) -> RetrieveTasksReply:
        """Hand out chunks, or say when to send the next request.

        Raises:
            Unavailable: See `Retrieval.answer`.
        """
        return self._retrieval.answer(request)

    def prepare_results(self, request: PrepareResults) -> PrepareResultsReply:
        """Make links for results that are too large to travel inline. The key of a result contains its lease's id.

        Raises:
            BadRequest: An id is not one that a lease can have, or the checksums of parts do not fit the size.
        """
        links = UploadLinks(self._backend.blobs)
        prepared: list[PreparedResult] = []
        for result in request.results:
            if not (is_name(result.package_id) and is_name(result.lease_id)):
                raise BadRequest("no lease has such ids: send `package_id` and `lease_id` as the lease says them")
            key = f"results/{result.package_id}/{result.lease_id}/{result.seq}"
            link, parts = links.make(key, result)
            prepared.append(PreparedResult(key=key, link=link, parts=parts))
        return PrepareResultsReply(results=prepared)

    def publish_results(self, request: PublishResults) -> Steps[PublishResultsReply]:
        """Store the results of tasks durably, in steps, before the reply.

        Raises:
            BadRequest: A result names a blob that does not belong to its lease.
            TooLarge: A publication had to wait in the inbox, and is larger than the store's records can be.
            Unavailable: A package is too busy now, or an account's key is not available. The worker should repeat the
                request; nothing counts twice then.
        """
        events: dict[str, list[Item]] = defaultdict(list)
        for pub in request.publications:
            _check_keys(pub)
            event = Published(
                worker_id=request.worker_id,
                executors=request.executors,
                generation=pub.generation,
                results=pub.results if request.seals else self._vouched(pub),
                wait_us=pub.wait_us,
                retrieve_us=pub.retrieve_us,
                publish_us=pub.publish_us,
                refused=pub.refused,
                message=pub.message,
                closed=_closed(pub),
            )
            events[pub.package_id].append((f"p#{pub.lease_id}#{pub.seq:06}", event))
        others = [ref for ref in request.others or () if ref.package_id not in events]
        # A package that cannot be read is left out of the reply, and the worker renews its leases by its next beat.
        heads, _ = gathered((ref.package_id for ref in others), self._backend.packages.load)

        def take(part: tuple[str, Sequence[Item]]) -> None:
            package_id, items = part
            heads[package_id] = self._folding.advance(package_id, items)

        room = self._backend.policy.fold_bytes
        yield from each([(package_id, part) for package_id in events for part in parts(events[package_id], room)], take)
        # Close the leases only now: if a message were deleted before its results are durable, a crash in between would
        # lose both, and no worker would run the tasks again.
        self._close(request.publications)
        self._placement.beats(request.worker_id)
        ended = [head for head in heads.values() if head is not None and head.life.ended]
        finish(each(ended, self._closed.open_next))
        refs = [*request.publications, *(ref for ref in request.others or () if ref.package_id in heads)]
        views = self._leases.views(refs, heads)
        if request.others is not None:
            self._extend([ref for ref in refs if not (isinstance(ref, Publication) and ref.closes)], views)
        # `hungry` and `waiting` depend only on the leases of the publications. If they depended on the others, a worker
        # with a long job would get the next small call each time that a small call ends, and the long job would get no
        # executor.
        own = views[: len(request.publications)]
        hungry = self._hungry(request.worker_id, own, heads)
        return PublishResultsReply(leases=views, hungry=hungry, waiting=self._express_waits(own))

    def _vouched(self, publication: Publication) -> list[TaskResult]:
        """Seal the results of a worker whose release makes no seals.

        The seal of a result in the blob store covers the result's key, since the master does not read the bytes.
        Results of a package that is not sealed stay as they are.

        Raises:
            Unavailable: The account's key is not available now (see AccountKeys).
        """
        package_id, results = publication.package_id, publication.results
        try:
            spec = self._backend.packages.spec(package_id) if is_sealed(package_id) else None
        except Unreadable:
            return results  # the client refuses these; the results of other packages must not wait
        key = None if spec is None else self._keys.key_of(spec.account_id, package_id, spec.start)
        if key is None:
            return results
        seals = Seals(key, package_id)
        return [
            replace(result, seal=seals.place(result, result.blob)) if result.blob is not None else result
            for result in seals.sealed(results)
        ]

    def _close(self, items: Iterable[Publication | Return]) -> None:
        receipts = [item.receipt for item in items if item.closes]
        if receipts:
            self._backend.queue.delete(receipts)

    def extend_leases(self, request: ExtendLeases) -> ExtendLeasesReply:
        """Say which tasks of a live worker's leases are still wanted.

        A chunk that has such tasks stays hidden from other workers for one more lease time. If a package cannot be
        read, the reply omits its leases, and the worker names them again in its next beat. If the whole request failed
        instead, all leases of the worker would end.

        Raises:
            Exception: None of the packages can be read; this is the error of the first one.
        """
        heads, failures = gathered((ref.package_id for ref in request.leases), self._backend.packages.load)
        if failures and not heads:
            raise next(iter(failures.values()))
        refs = [ref for ref in request.leases if ref.package_id in heads]
        views = self._leases.views(refs, heads)
        self._extend(refs, views)
        self._placement.beats(request.worker_id)
        hungry = self._hungry(request.worker_id, views, heads)
        credentials = self._renewed(views, refs, heads) if request.credentials else []
        return ExtendLeasesReply(
            leases=views, hungry=hungry, waiting=self._express_waits(views), credentials=credentials
        )

    def _renewed(
        self, views: Sequence[LeaseView], refs: Sequence[LeaseRef], heads: Mapping[str, Head | None]
    ) -> list[TaskCredentials]:
        """Return new credentials for the packages whose tasks the master still wants from this worker."""
        wanted = [ref.package_id for ref, view in zip(refs, views, strict=True) if view.state == "wanted"]
        found: list[TaskCredentials] = []
        for package_id in dict.fromkeys(wanted):
            head = heads[package_id]
            with suppress(Unavailable):  # the leases are extended already, and the worker sends another beat soon
                credentials = None if head is None else self._leases.credentials(head)
                found += [] if credentials is None else [credentials]
        return found

    def _extend(self, refs: Iterable[LeaseRef], views: Iterable[LeaseView]) -> None:
        """Hide the chunks of wanted leases from other workers for one more lease time."""
        wanted = {view.lease_id for view in views if view.state == "wanted"}
        live = list(dict.fromkeys(ref.receipt for ref in refs if ref.lease_id in wanted))
        if live:
            self._backend.queue.extend(live, self._backend.policy.lease_s)

    def give_back(self, request: GiveBack) -> GiveBackReply:
        """Take back tasks that a worker will not run.

        Usually the tasks are cut into new chunks before the master answers. If the package has pauses between its folds
        (pacing.pause_s) and its tasks end often, the next fold cuts them.

        Raises:
            Unavailable: A package is too busy now, or a master of a newer release has written its head. The worker
                should repeat the request; nothing counts twice then.
        """
        finish(each(request.returns, self._take_back))
        unused = [item for item in request.returns if item.ranges == [(item.start, item.end)]]
        self._backend.queue.delete_unused([item.receipt for item in unused if item.closes])
        self._close(item for item in request.returns if item not in unused)
        if request.leaving:
            self._idle.left(request.worker_id)
            self._placement.left(request.worker_id)
        return GiveBackReply()

    def _take_back(self, item: Return) -> None:
        event = GaveBack(
            generation=item.generation,
            ranges=item.ranges,
            losses=max(item.attempt - 1, 0),
            unfit=item.unfit,
            used_us=item.used_us,
            closed=_closed(item),
            number=number_of(f"{item.lease_id}#{item.seq}"),
        )
        self._folding.confirm(item.package_id, f"g#{item.lease_id}#{item.seq:06}", event)

    def _hungry(self, worker_id: str, views: Sequence[LeaseView], heads: Mapping[str, Head | None]) -> bool:
        """Whether an idle worker can run tasks of this worker, and no chunk waits that the idle worker can take."""
        if all(view.state != "wanted" for view in views):
            return False
        running = [head for head in heads.values() if head is not None and not head.life.ended]
        fit = self._idle.other(worker_id, self._backend.clock.now(), running)
        # A chunk that the idle worker cannot take does not count: such a chunk may wait long, for example for another
        # account's worker, and no worker would give tasks back meanwhile.
        return fit is not None and not self._backend.queue.has_others((), fit)

    def _express_waits(self, views: Sequence[LeaseView]) -> bool:
        """Whether a worker that still has wanted leases should fetch another package's first chunk."""
        return any(view.state == "wanted" for view in views) and self._backend.queue.express_waits()


def _closed(item: Publication | Return) -> Range | None:
    """Return the chunk whose lease the worker closes; None if it closes none. Its queue message is deleted later."""
    return (item.start, item.end) if item.closes else None


def _check_keys(publication: Publication) -> None:
    """Check that the blobs of results have keys that `prepare_results` gives.

    The master signs links for the keys that are committed. Without this check, a worker could name another account's
    blob, and the client of its package would get a link to that blob.

    Raises:
        BadRequest: The key of a blob is not one of this lease.
    """
    place = f"results/{publication.package_id}/{publication.lease_id}/"
    for result in publication.results:
        if result.blob is not None and not (result.blob.key.startswith(place) and result.blob.key != place):
            raise BadRequest(f"{result.blob.key!r} is not this lease's: use the key that prepare_results answered")
