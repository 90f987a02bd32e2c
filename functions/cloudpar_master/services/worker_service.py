"""Retrieve, publish, extend, give back. All in bulk."""

from collections import OrderedDict, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from cloudpar_master.core import pacing, quota
from cloudpar_master.core.events import Cleared, Event, ExecutorsIdle, GaveBack, Lost, Published
from cloudpar_master.core.head import Head
from cloudpar_master.ports import LARGEST_RECEIVES, Fit, Message, StaleAttempt
from cloudpar_protocol import ranges
from cloudpar_protocol.client_messages import StartTasks
from cloudpar_protocol.errors import BadRequest, Unavailable
from cloudpar_protocol.limits import BULK_ITEMS, RETRIEVED_CHUNKS
from cloudpar_protocol.payloads import SEAL_BYTES, BlobData, InlineData, Range, TaskData, TaskResult
from cloudpar_protocol.seals import is_sealed
from cloudpar_protocol.worker_messages import (
    ExtendLeases,
    ExtendLeasesReply,
    GiveBack,
    GiveBackReply,
    Lease,
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
)

from .account_keys import AccountKeys
from .attempts import Attempts
from .backend import Backend
from .chunk_text import ChunkText
from .closed_packages import ClosedPackages
from .folding import Folding
from .idle_workers import IdleWorkers
from .placement import Placement, runs
from .round_robin import REMEMBERED, RoundRobin
from .submission import is_name
from .upload_links import UploadLinks

STALE_ROUNDS = 20
"""After so many receptions of what nobody wants any more, the worker asks again: at once."""

PASSED_OVER = 100
"""How many packages that a worker cannot run are looked at when it asks; the others when it asks again."""

UNCUT = 25
"""How many heads of packages with uncut tasks are read together: as a rule, the first package is the one."""

UNFIT_DELAYS_S = 5.0, 30.0
"""A worker that was handed only what it cannot run asks again after the first of these, and after twice as long each
further time, up to the second. The queue cannot look for it, so that each of its requests takes such chunks out and
puts them back, which costs calls."""

UNFIT_ROUNDS = 4
"""After how many receptions of what a worker cannot run, if that was all that came the last time, too, the worker asks
again. The chunks that it saw are behind the others then."""


class Received(NamedTuple):
    """What a worker is handed.

    Attributes:
        came: The queue had something that this retrieval had not put back itself.
        unfit: Packages of which it had chunks, and that this worker cannot run.
        unfit_express: One of these chunks is `express`, so it keeps its place before those that are not.
    """

    leases: list[Lease]
    came: bool
    unfit: frozenset[str] = frozenset()
    unfit_express: bool = False


class WorkerService:
    """What the worker token may ask."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._folding = Folding(backend)
        self._closed = ClosedPackages(backend, self._folding)
        self._idle = IdleWorkers()
        self._placement = Placement(backend)
        self._attempts = Attempts()
        self._unfit: OrderedDict[str, int] = OrderedDict()
        """How often in a row a worker was handed only what it cannot run."""
        self._rounds, self._rounds_aside = RoundRobin(), RoundRobin()
        self._keys = AccountKeys(backend)

    def retrieve_tasks(self, request: RetrieveTasks) -> RetrieveTasksReply:
        """Hand out chunks. An empty queue makes packages with uncut tasks open their windows.

        A worker that names packages in `besides` has work: no window opens for it, and it does not idle.
        """
        now, fit = self._backend.clock.now(), self._resume(request.worker_id, self._placement.heard(request))
        if request.peek:
            delay = pacing.worker_delay_s(self._idle.count(now))
            return RetrieveTasksReply(waiting=self._others_wait(request, fit), retry_after_s=delay)
        found = self._receive_live(request, fit)
        if request.besides:
            return RetrieveTasksReply(leases=found.leases, waiting=self._others_wait(request, fit))
        if not found.leases:
            passed_over = found.unfit or self._backend.queue.passed_over(fit)
            passed_over = self._rounds.next(request.worker_id, passed_over, PASSED_OVER)
            resumed = self._placement.resumed(passed_over) if passed_over else set()
            if resumed:
                fit = _without(fit, resumed)
                found = self._receive_live(request, fit)
        if not found.came and self._open_windows(request, fit):
            found = self._receive_live(request, fit)
        self._idle.note(request.worker_id, now, fit, idle=not found.leases)
        delay = 0.0 if found.came and not found.unfit else pacing.worker_delay_s(self._idle.count(now))
        unfit_delay = self._unfit_delay_s(request.worker_id, only_unfit=bool(found.unfit) and not found.leases)
        return RetrieveTasksReply(leases=found.leases, retry_after_s=max(delay, unfit_delay))

    def _unfit_delay_s(self, worker_id: str, *, only_unfit: bool) -> float:
        before = self._unfit.pop(worker_id, 0)
        if not only_unfit:
            return 0.0
        self._unfit[worker_id] = before + 1
        if len(self._unfit) > REMEMBERED:
            self._unfit.popitem(last=False)
        shortest_s, longest_s = UNFIT_DELAYS_S
        return min(shortest_s * (1 << min(before, 10)), longest_s)

    def _resume(self, worker_id: str, fit: Fit) -> Fit:
        """What a worker can run, with the waiting packages that no worker can: it runs these, to show how they fail.

        So a package that fails everywhere need not wait until this worker has nothing else to do.
        """
        passed_over = self._backend.queue.passed_over(fit) if fit.set_aside else []
        waiting = [package_id for package_id in passed_over if package_id in fit.set_aside]
        waiting = self._rounds_aside.next(worker_id, waiting, PASSED_OVER)
        return _without(fit, self._placement.resumed(waiting)) if waiting else fit

    def _others_wait(self, request: RetrieveTasks, fit: Fit) -> bool:
        return self._backend.queue.has_others(frozenset(request.besides), fit)

    def _receive_live(self, request: RetrieveTasks, fit: Fit) -> Received:
        """Receive until something is wanted still, or nothing comes but what was put back.

        First chunks that do not fit keep their place, so they would come again and again: once all of these have been
        seen, the others are received. A busy worker can do without, and looks once.
        """
        unfit: set[str] = set()
        put_back: set[tuple[str, int, int, int]] = set()
        rounds = 1 if request.besides else UNFIT_ROUNDS if request.worker_id in self._unfit else STALE_ROUNDS
        express = True
        for number in range(STALE_ROUNDS):
            attempt_id = self._attempts.name(request.attempt_id)
            found = self._receive(request, attempt_id, fit, put_back, express=express)
            unfit |= found.unfit
            if not found.leases and (found.came or found.unfit):
                self._attempts.went_stale(request.attempt_id)  # what was put back is deleted as well
            if found.leases or (unfit and number + 1 >= rounds):
                break
            if not found.came:
                if not (express and found.unfit_express):
                    break
                express = False
        return found._replace(unfit=frozenset(unfit))

    def _receive(
        self,
        request: RetrieveTasks,
        attempt_id: str,
        fit: Fit,
        put_back: set[tuple[str, int, int, int]],
        *,
        express: bool,
    ) -> Received:
        lease_s = self._backend.policy.lease_s
        most = min(request.chunks, RETRIEVED_CHUNKS)
        besides = frozenset(request.besides)
        try:
            messages = self._backend.queue.receive(
                most, lease_s, attempt_id, besides, fit, again=request.again, express=express
            )
        except StaleAttempt:  # another process deleted what came by this name, and went on with the next one
            return Received([], came=True)
        chunks = [(message, ChunkText.parse(message.body)) for message in messages]
        found = self._backend.packages.find([chunk.package_id for _, chunk in chunks])
        known = [head for head, _ in found.values()]
        heads: dict[str, Head | None] = {head.package_id: head for head in known}
        heads |= self._placement.restored(known, fit)
        budgets = self._budgets(heads.values())
        leases: list[Lease] = []
        stale: list[str] = []
        unfit: list[tuple[Message, Head]] = []
        for message, chunk in chunks:
            package_id = chunk.package_id
            head = heads.get(package_id)
            wanted = _wanted(head, chunk.start, chunk.end, chunk.generation)
            losses = chunk.losses + message.receives - 1
            if head is None or not wanted:
                if head is not None:
                    self._note_untouched(head, chunk, message)
                stale.append(message.receipt)
            elif head.tasks.draining and chunk.is_untouched(message):
                event = Cleared(generation=chunk.generation, ranges=wanted)
                heads[package_id] = self._folding.confirm(package_id, f"d#{chunk.start}#{chunk.generation}", event)
                stale.append(message.receipt)
            elif losses >= LARGEST_RECEIVES:
                gone = Lost(start=chunk.start, end=chunk.end, generation=chunk.generation, receives=losses)
                heads[package_id] = self._folding.confirm(package_id, f"l#{chunk.start}#{chunk.generation}", gone)
                stale.append(message.receipt)
            elif budgets[package_id] <= 0:
                # It is queued anew once there is compute time again; until then it must not surface again and again,
                # since that looks like a chunk that kills its workers.
                back = GaveBack(generation=chunk.generation, ranges=wanted, losses=losses)
                heads[package_id] = self._folding.confirm(package_id, f"b#{chunk.start}#{chunk.generation}", back)
                stale.append(message.receipt)
            elif not runs(fit, head):
                unfit.append((message, head))
            else:
                start, budget_us = found[package_id][1].start, budgets[package_id]
                leases.append(self._lease(request.executors, head, start, message, budget_us))
        if stale:
            self._backend.queue.delete(stale)
        names = {ChunkText.parse(message.body).name for message, _ in unfit}
        came = bool(messages) and not (len(unfit) == len(messages) and names <= put_back)
        put_back.update(names)
        unfit_express = self._placement.put_back(unfit)
        # A repeated attempt may bring as many from each of two queues. What does not fit into one answer surfaces again
        # when its lease has run out.
        packages = frozenset(head.package_id for _, head in unfit)
        return Received(leases[:RETRIEVED_CHUNKS], came, packages, unfit_express)

    def _note_untouched(self, head: Head, chunk: ChunkText, message: Message) -> None:
        """Nobody runs a stale chunk that was never handed out: its package need not wait for it to be charged."""
        if head.life.ended and not head.life.settled and chunk.is_untouched(message):
            event = Cleared(generation=chunk.generation, ranges=[(chunk.start, chunk.end)])
            self._folding.advance(head.package_id, [(f"d#{chunk.start}#{chunk.generation}", event)])

    def _lease(self, executors: int, head: Head, start: StartTasks, message: Message, budget_us: int) -> Lease:
        policy, code, data = self._backend.policy, start.code, start.data
        chunk = ChunkText.parse(message.body)
        wanted = _wanted(head, chunk.start, chunk.end, chunk.generation)
        return Lease(
            package_id=head.package_id,
            lease_id=self._backend.ids.fresh(),
            receipt=message.receipt,
            start=chunk.start,
            end=chunk.end,
            generation=chunk.generation,
            ranges=wanted,
            attempt=chunk.losses + message.receives,
            account=head.account_id,
            lease_s=policy.lease_s,
            code=code,
            code_link=self._backend.blobs.get_link(code.blob.key) if code.blob else None,
            data=_slice(data, wanted),
            data_link=self._backend.blobs.get_link(data.blob.key) if isinstance(data, BlobData) else None,
            tasks=head.tasks.count,
            call=start.call,
            codec=start.codec,
            python=start.python,
            mean_us=round(head.pace.mean_us),
            wait_us=chunk.waited_us(message, self._backend.clock.now()),
            task_timeout_s=min(start.task_timeout_s or policy.task_timeout_s, policy.task_timeout_s),
            budget_us=budget_us,
            collect_us=pacing.collect_us(executors, head, budget_us, policy),
            retries=start.retries,
            retry_on=start.retry_on,
            threads_per_task=start.threads_per_task,
            depth=start.depth,
            seal=start.seal,
            seal_key=None if start.seal is None else self._keys.key(head.account_id),
            elsewhere=not head.life.run_anyway,
        )

    def _open_windows(self, request: RetrieveTasks, fit: Fit) -> bool:
        """Executors idle while packages have tasks in no chunk: let these cut more (rule 14)."""
        cut = 0
        for package_id in self._uncut_for(fit):
            event = ExecutorsIdle(executors=request.executors)
            try:
                head = self._folding.advance(package_id, [(f"i#{request.worker_id}#{request.attempt_id}", event)])
            except Unavailable:
                continue  # others are at it
            # Its last fold noted what was sent, and the one before cut that.
            if head is not None and not head.quota.reserve_spent:
                cut += sum(head.version - piece.generation <= 1 for piece in head.tasks.open)
            if cut >= request.executors:
                break
        return cut > 0

    def _uncut_for(self, fit: Fit) -> Iterator[str]:
        """Packages with uncut tasks, oldest first, whose chunks are of any use to a worker."""
        uncut = [each for each in self._backend.packages.uncut(BULK_ITEMS) if each not in fit.set_aside]
        for start in range(0, len(uncut), UNCUT):
            part = uncut[start : start + UNCUT]
            heads = self._backend.packages.heads(part) if fit.pythons else []
            yield from (head.package_id for head in heads if fit.has(head.python)) if fit.pythons else part

    def prepare_results(self, request: PrepareResults) -> PrepareResultsReply:
        """Links for results that are too large to travel inline; a key contains its lease (rule 8)."""
        links = UploadLinks(self._backend.blobs)
        prepared: list[PreparedResult] = []
        for result in request.results:
            if not (is_name(result.package_id) and is_name(result.lease_id)):
                raise BadRequest("no lease has such ids: send `package_id` and `lease_id` as the lease says them")
            key = f"results/{result.package_id}/{result.lease_id}/{result.seq}"
            link, parts = links.make(key, result)
            prepared.append(PreparedResult(key=key, link=link, parts=parts))
        return PrepareResultsReply(results=prepared)

    def publish_results(self, request: PublishResults) -> PublishResultsReply:
        """Take results; they are durable when this returns."""
        events: dict[str, list[tuple[str, Event]]] = defaultdict(list)
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
                closed=(pub.start, pub.end) if pub.closes else None,
            )
            events[pub.package_id].append((f"p#{pub.lease_id}#{pub.seq:06}", event))
        heads = {package_id: self._folding.advance(package_id, items) for package_id, items in events.items()}
        self._close(request.publications)
        self._placement.beats(request.worker_id)
        for head in heads.values():
            if head is not None and head.life.ended:
                self._closed.open_next(head)
        views = self._views(request.publications, heads)
        hungry = self._hungry(request.worker_id, views, heads)
        return PublishResultsReply(leases=views, hungry=hungry, waiting=self._express_waits(views))

    def _vouched(self, publication: Publication) -> list[TaskResult]:
        """Results of a worker that knows no seals: the master makes them, of large ones on their place."""
        package_id, results = publication.package_id, publication.results
        spec = self._backend.packages.spec(package_id) if is_sealed(package_id) else None
        seals = None if spec is None else self._keys.seals(spec.account_id, package_id)
        if seals is None:
            return results
        return [
            replace(result, seal=seals.place(result, result.blob)) if result.blob is not None else result
            for result in seals.sealed(results)
        ]

    def _close(self, items: Iterable[Publication | Return]) -> None:
        receipts = [item.receipt for item in items if item.closes]
        if receipts:
            self._backend.queue.delete(receipts)

    def extend_leases(self, request: ExtendLeases) -> ExtendLeasesReply:
        """The worker lives: keep its chunks from others, and tell it what is still wanted of them."""
        heads = self._load(ref.package_id for ref in request.leases)
        views = self._views(request.leases, heads)
        live = [ref.receipt for ref, view in zip(request.leases, views, strict=True) if view.state == "wanted"]
        if live:
            self._backend.queue.extend(live, self._backend.policy.lease_s)
        self._placement.beats(request.worker_id)
        hungry = self._hungry(request.worker_id, views, heads)
        return ExtendLeasesReply(leases=views, hungry=hungry, waiting=self._express_waits(views))

    def give_back(self, request: GiveBack) -> GiveBackReply:
        """Take untouched tasks back; they are cut anew before this is answered."""
        for item in request.returns:
            event = GaveBack(
                generation=item.generation,
                ranges=item.ranges,
                losses=max(item.attempt - 1, 0),
                unfit=item.unfit,
                used_us=item.used_us,
            )
            self._folding.confirm(item.package_id, f"g#{item.lease_id}#{item.seq:06}", event)
        unused = [item for item in request.returns if item.ranges == [(item.start, item.end)]]
        self._backend.queue.delete_unused([item.receipt for item in unused if item.closes])
        self._close(item for item in request.returns if item not in unused)
        if request.leaving:
            self._idle.left(request.worker_id)
            self._placement.left(request.worker_id)
        return GiveBackReply()

    def _load(self, package_ids: Iterable[str]) -> dict[str, Head | None]:
        return {package_id: self._backend.packages.load(package_id) for package_id in dict.fromkeys(package_ids)}

    def _views(self, refs: Sequence[LeaseRef], heads: Mapping[str, Head | None]) -> list[LeaseView]:
        budgets = self._budgets(heads.values())
        return [self._view(ref, heads[ref.package_id], budgets.get(ref.package_id, 0)) for ref in refs]

    def _view(self, ref: LeaseRef, head: Head | None, budget_us: int) -> LeaseView:
        wanted = _wanted(head, ref.start, ref.end, ref.generation)
        if head is None or head.life.ended:
            return LeaseView(lease_id=ref.lease_id, state="finished" if _completed(head) else "ended")
        if not wanted:
            return LeaseView(lease_id=ref.lease_id, state="finished")
        lease_s = self._backend.policy.lease_s
        return LeaseView(lease_id=ref.lease_id, state="wanted", ranges=wanted, lease_s=lease_s, budget_us=budget_us)

    def _budgets(self, heads: Iterable[Head | None]) -> dict[str, int]:
        """What each running package may use, by its id; every account is asked once."""
        running = [head for head in heads if head is not None and not head.life.ended]
        account_ids = dict.fromkeys(head.account_id for head in running)  # always in the same order
        free_us = {account_id: self._backend.accounts.free_us(account_id) for account_id in account_ids}
        return {head.package_id: quota.budget_us(head, free_us[head.account_id]) for head in running}

    def _hungry(self, worker_id: str, views: Sequence[LeaseView], heads: Mapping[str, Head | None]) -> bool:
        """Whether another worker idles that can run what this one could give back, and nothing is queued."""
        if all(view.state != "wanted" for view in views):
            return False
        running = [head for head in heads.values() if head is not None and not head.life.ended]
        return self._idle.others(worker_id, self._backend.clock.now(), running) and self._backend.queue.waiting() == 0

    def _express_waits(self, views: Sequence[LeaseView]) -> bool:
        """Whether a worker that goes on with its leases should fetch another package's first chunk."""
        return any(view.state == "wanted" for view in views) and self._backend.queue.express_waits()


def _without(fit: Fit, resumed: Collection[str]) -> Fit:
    return fit._replace(set_aside=tuple(each for each in fit.set_aside if each not in resumed))


def _check_keys(publication: Publication) -> None:
    """A result lies where prepare_results said: links are signed for whatever key is committed."""
    place = f"results/{publication.package_id}/{publication.lease_id}/"
    for result in publication.results:
        if result.blob is not None and not (result.blob.key.startswith(place) and result.blob.key != place):
            raise BadRequest(f"{result.blob.key!r} is not this lease's: use the key that prepare_results answered")


def _completed(head: Head | None) -> bool:
    return head is not None and head.life.state == "completed"


def _wanted(head: Head | None, start: int, end: int, generation: int) -> list[Range]:
    """What of a chunk has no result and is not queued anew (rule 5)."""
    if head is None or head.life.ended:
        return []
    pieces = [(piece.start, piece.end) for piece in head.tasks.open if piece.generation == generation]
    return ranges.intersect(pieces, [(start, end)])


def _slice(data: TaskData, wanted: Sequence[Range]) -> TaskData:
    if isinstance(data, InlineData):
        items = [item for start, end in wanted for item in data.items[start:end]]
        return InlineData(items, b"".join([data.seals[SEAL_BYTES * start : SEAL_BYTES * end] for start, end in wanted]))
    return data
