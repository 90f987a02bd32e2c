"""Takes chunks out of the queue until a worker has some that it can run."""

import logging
from collections.abc import Sequence
from typing import NamedTuple

from cloudpar_master.core.events import Broken, Cleared, Event, GaveBack, Lost
from cloudpar_master.core.head import Head, Spec
from cloudpar_master.ports import LARGEST_RECEIVES, Fit, Message, StaleAttempt, Stay
from cloudpar_protocol.limits import RETRIEVED_CHUNKS
from cloudpar_protocol.payloads import Range
from cloudpar_protocol.worker_messages import Lease, RetrieveTasks

from .attempts import Attempts
from .backend import Backend
from .chunk_text import ChunkText
from .folding import Folding
from .isolation import gathered
from .leases import Leases, wanted
from .placement import Placement, runs

STALE_ROUNDS = 20
"""How many times one call of `receive` receives from the queue, at most, while no chunk comes that can be leased."""

SPEC_DAMAGED = Broken(message="the master's spec of the package is damaged: start the work again")

log = logging.getLogger("cloudpar_master")


class Received(NamedTuple):
    """The outcome of a retrieval.

    Attributes:
        came: Whether the last round brought a new chunk, which no earlier round had put back. Also True if the queue
            could not repeat the attempt.
        unfit: The packages of the received chunks that this worker cannot run.
        unfit_express: Whether one of the chunks that the last round brought and this worker cannot run is `express`.
            The queue delivers such a chunk again before all other chunks.
    """

    leases: list[Lease]
    came: bool
    unfit: frozenset[str] = frozenset()
    unfit_express: bool = False


class _Placed(NamedTuple):
    """The decisions about the chunks of one round.

    Attributes:
        settled: The receipts of messages that are not needed any more.
        unfit: The chunks that this worker cannot run.
        refused, refusals: The chunks that cannot be handed out now, and the errors that say why. A chunk whose package
            cannot be read is not in `refused`: it waits until the attempt is repeated, or its visibility timeout ends.
        unread: Whether there are chunks whose package cannot be read.
    """

    leases: list[Lease]
    settled: list[str]
    unfit: list[tuple[Message, Head]]
    refused: list[tuple[Message, Head]]
    refusals: list[Exception]
    unread: bool


class Receiver:
    """Receives chunks for one process.

    A chunk that the worker can run is leased; a chunk that it cannot run is put back. If the package does not want a
    chunk any more, or the chunk must not be handed out, the receiver deletes the message. If the package must learn of
    the deletion, the receiver first folds an event.
    """

    def __init__(self, backend: Backend, folding: Folding, placement: Placement, leases: Leases) -> None:
        self._backend = backend
        self._folding = folding
        self._placement = placement
        self._leases = leases
        self._attempts = Attempts()

    def receive(
        self, request: RetrieveTasks, fit: Fit, unfit_rounds: int = STALE_ROUNDS, *, sent: bool = False
    ) -> Received:
        """Receive until there is a lease, or the queue brings nothing new, or STALE_ROUNDS rounds are over.

        A chunk that this call has put back is not new.

        Express chunks come before all others, so express chunks that do not fit the worker would come in each round.
        Once this call has seen all of them, it receives no more express chunks.

        Args:
            request: The worker's request.
            fit: What the worker can run.
            unfit_rounds: How many rounds there are at most if some of the received chunks do not fit the worker.
            sent: Whether this process has just sent chunks, so that the queue has some.

        Raises:
            Unavailable: No chunk can be handed out, because a package is too busy now or an account's key is not
                available. The worker should repeat the request.
            Exception: No chunk can be handed out because of this error.
        """
        unfit: set[str] = set()
        put_back: set[tuple[str, int, int, int]] = set()
        express = True
        for number in range(STALE_ROUNDS):
            found = self._receive_once(request, fit, put_back, express=express, sent=sent)
            unfit |= found.unfit
            if not found.leases and (found.came or found.unfit):
                self._attempts.went_stale(request.attempt_id)  # the messages of chunks that were put back are deleted
            if found.leases or (unfit and number + 1 >= unfit_rounds):
                break
            if not found.came:
                if not (express and found.unfit_express):
                    break
                express = False
        return found._replace(unfit=frozenset(unfit))

    def _receive_once(
        self,
        request: RetrieveTasks,
        fit: Fit,
        put_back: set[tuple[str, int, int, int]],
        *,
        express: bool,
        sent: bool,
    ) -> Received:
        messages = self._messages(request, fit, express=express, sent=sent)
        if messages is None:
            return Received([], came=True)
        chunks = self._parsed(messages)
        placed = self._place(request, fit, chunks)
        # Delete the messages only now: if this process dies before it has folded the events, the messages must come
        # again.
        if placed.settled:
            self._backend.queue.delete(placed.settled)
        names = {ChunkText.parse(message.body).name for message, _ in placed.unfit}
        came = bool(messages) and not (len(placed.unfit) == len(messages) and names <= put_back)
        put_back.update(names)
        unfit_express = self._placement.put_back(placed.unfit)
        # A refused chunk also gets a new message: deliveries that bring the chunk to no worker must not count as lost
        # workers.
        self._placement.put_back(placed.refused)
        if placed.refusals and not placed.leases:
            if not placed.unread:  # otherwise the attempt repeats the chunks of the packages that could not be read
                self._attempts.went_stale(request.attempt_id)  # the messages that it would repeat are deleted
            raise placed.refusals[0]
        # A repeated attempt may bring the full number of messages from each of two queues. Chunks that do not fit into
        # one answer become visible again when their visibility timeout ends.
        packages = frozenset(head.package_id for _, head in placed.unfit)
        return Received(placed.leases[:RETRIEVED_CHUNKS], came, packages, unfit_express)

    def _parsed(self, messages: Sequence[Message]) -> list[tuple[Message, ChunkText]]:
        """Read the texts of messages.

        Delete each message that is not about a chunk: otherwise the queue would deliver it again, up to
        LARGEST_RECEIVES times.
        """
        chunks: list[tuple[Message, ChunkText]] = []
        for message in messages:
            try:
                chunks.append((message, ChunkText.parse(message.body)))
            except ValueError as error:
                log.error("a message of the task queue is deleted: %s", error)  # noqa: TRY400 - the text says it all
                self._backend.queue.delete([message.receipt])
        return chunks

    def _place(self, request: RetrieveTasks, fit: Fit, chunks: Sequence[tuple[Message, ChunkText]]) -> _Placed:
        """Lease each chunk that may be handed out, and decide what happens to the other chunks."""
        found, failures = self._find([chunk.package_id for _, chunk in chunks])
        known = [head for head, _ in found.values()]
        heads: dict[str, Head | None] = {head.package_id: head for head in known}
        heads |= self._placement.restored(known, fit)
        budgets = self._leases.budgets(heads.values())
        placed = _Placed([], [], [], [], [*failures.values()], unread=bool(failures))
        for message, chunk in chunks:
            package_id = chunk.package_id
            if package_id in failures:
                continue
            head = heads.get(package_id)
            left = wanted(head, chunk.start, chunk.end, chunk.generation)
            try:
                if head is None or not left:
                    if head is not None:
                        self._note_untouched(head, chunk, message)
                    placed.settled.append(message.receipt)
                    continue
                spec, budget_us = found[package_id][1], budgets[package_id]
                withdrawal = _withdrawal(head, chunk, message, left, budget_us) if spec else ("spec", SPEC_DAMAGED)
                if withdrawal:
                    heads[package_id] = self._report(head, *withdrawal)
                    placed.settled.append(message.receipt)
                elif not runs(fit, head) or (network := self._leases.network(request, head)) is None:
                    placed.unfit.append((message, head))
                elif spec is not None:
                    lease = self._leases.make(request, head, spec.start, message, budget_us, network=network)
                    placed.leases.append(lease)
            except Exception as refusal:  # noqa: BLE001 - any error of one package must not hold up the chunks of others
                # For example, the package is busy, or the key of its account is not available.
                placed.refusals.append(refusal)
                placed.refused.extend([(message, head)] if head else [])
        return placed

    def _find(self, package_ids: Sequence[str]) -> tuple[dict[str, tuple[Head, Spec | None]], dict[str, Exception]]:
        """Read packages together, or one by one if that fails. Returns those that exist, and the errors of others."""
        packages = self._backend.packages
        try:
            return packages.find(package_ids), {}
        except Exception:  # noqa: BLE001 - one package that cannot be read must not hold up the chunks of others
            parts, failures = gathered(package_ids, lambda package_id: packages.find([package_id]))
            return {key: pair for part in parts.values() for key, pair in part.items()}, failures

    def _report(self, head: Head, key: str, event: Event) -> Head | None:
        """Fold an event that withdraws a chunk. If a newer release wrote the head, its master folds the event."""
        if head.foreign:
            return self._folding.advance(head.package_id, [(key, event)])
        return self._folding.confirm(head.package_id, key, event)

    def _messages(self, request: RetrieveTasks, fit: Fit, *, express: bool, sent: bool) -> list[Message] | None:
        """Receive messages. None: the queue cannot repeat this attempt, so that the caller needs a new attempt."""
        policy = self._backend.policy
        most, lease_s = min(request.chunks, RETRIEVED_CHUNKS), policy.lease_s
        if policy.shares_chunks:
            # A worker without leases does not know how long a chunk keeps all of its executors busy. If it got a chunk
            # for each of them, it could hold the work of several workers while these are idle.
            most = 1 if request.idle else min(most, request.executors)
        # The worker stays with its account only for one executor's share of the messages, because its other executors
        # may serve other accounts.
        stay = Stay(request.worker_id, -(-most // request.executors))
        attempt_id, besides = self._attempts.name(request.attempt_id), frozenset(request.besides)
        try:
            return self._backend.queue.receive(
                most,
                lease_s,
                attempt_id,
                besides,
                fit,
                stay=stay,
                again=request.again,
                express=express,
                sent=sent,
            )
        except StaleAttempt:
            return None

    def _note_untouched(self, head: Head, chunk: ChunkText, message: Message) -> None:
        """Report to an ended package that no worker has received this chunk before, if that is the case.

        The package then does not wait for the time of the chunk's tasks. A settled package gets no report.
        """
        if head.life.ended and not head.life.settled and chunk.is_untouched(message):
            event = Cleared(generation=chunk.generation, ranges=[(chunk.start, chunk.end)])
            self._folding.advance(head.package_id, [(_key("d", chunk), event)])


def _withdrawal(
    head: Head, chunk: ChunkText, message: Message, left: list[Range], budget_us: int
) -> tuple[str, Event] | None:
    """Return an event and its key if a wanted chunk must not be handed out; None if it may be handed out."""
    losses = chunk.losses + message.receives - 1
    if head.tasks.draining and chunk.is_untouched(message):
        return _key("d", chunk), Cleared(generation=chunk.generation, ranges=left)
    if losses >= LARGEST_RECEIVES:
        lost = Lost(start=chunk.start, end=chunk.end, generation=chunk.generation, receives=losses)
        return _key("l", chunk), lost
    if budget_us <= 0:
        # The package sends the chunk again once it has compute time. If the message stayed, it would be delivered
        # several times, and the chunk would look like a chunk that kills its workers.
        return _key("b", chunk), GaveBack(generation=chunk.generation, ranges=left, losses=losses)
    return None


def _key(kind: str, chunk: ChunkText) -> str:
    return f"{kind}#{chunk.start}#{chunk.generation}"
