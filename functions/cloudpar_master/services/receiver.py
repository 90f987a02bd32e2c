"""Takes chunks out of the queue until a worker has some that it can run."""

from typing import NamedTuple

from cloudpar_master.core.events import Cleared, Event, GaveBack, Lost
from cloudpar_master.core.head import Head
from cloudpar_master.ports import LARGEST_RECEIVES, Fit, Message, StaleAttempt
from cloudpar_protocol.limits import RETRIEVED_CHUNKS
from cloudpar_protocol.payloads import Range
from cloudpar_protocol.worker_messages import Lease, RetrieveTasks

from .attempts import Attempts
from .backend import Backend
from .chunk_text import ChunkText
from .folding import Folding
from .leases import Leases, wanted
from .placement import Placement, runs

STALE_ROUNDS = 20
"""How many times one call of `receive` receives from the queue, at most, while no chunk comes that can be leased."""


class Received(NamedTuple):
    """What a retrieval brings.

    Attributes:
        came: Whether the last round brought a message of a chunk that no earlier round had put back, or the queue could
            not repeat the attempt.
        unfit: Packages of chunks that the queue brought and that this worker cannot run.
        unfit_express: Whether one of these chunks, in the last round, is `express`. The queue brings it again before
            chunks that are not.
    """

    leases: list[Lease]
    came: bool
    unfit: frozenset[str] = frozenset()
    unfit_express: bool = False


class Receiver:
    """Receives chunks for one process.

    It leases each chunk, or puts it back if the worker cannot run it. If the package does not want the chunk any more,
    or the chunk must not be handed out, it deletes the message. If the package has to know, it first folds an event.
    """

    def __init__(self, backend: Backend, folding: Folding, placement: Placement, leases: Leases) -> None:
        self._backend = backend
        self._folding = folding
        self._placement = placement
        self._leases = leases
        self._attempts = Attempts()

    def receive(self, request: RetrieveTasks, fit: Fit, unfit_rounds: int = STALE_ROUNDS) -> Received:
        """Receive until there is a lease, or the queue brings nothing new, or STALE_ROUNDS rounds are over.

        A chunk that this call has put back is not new.

        Express chunks come before all others, so those that do not fit the worker would come each time. Once the
        retrieval has seen all of them, it receives without express chunks.

        Args:
            request: The worker's request.
            fit: What the worker can run.
            unfit_rounds: How many times to receive, at most, if some of the chunks that come do not fit the worker.

        Raises:
            Unavailable: A package is too busy now, a master of a newer release has written its head, or an account's
                key is not available. The worker should repeat the request.
        """
        unfit: set[str] = set()
        put_back: set[tuple[str, int, int, int]] = set()
        express = True
        for number in range(STALE_ROUNDS):
            found = self._receive_once(request, fit, put_back, express=express)
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
        self, request: RetrieveTasks, fit: Fit, put_back: set[tuple[str, int, int, int]], *, express: bool
    ) -> Received:
        messages = self._messages(request, fit, express=express)
        if messages is None:
            return Received([], came=True)
        chunks = [(message, ChunkText.parse(message.body)) for message in messages]
        found = self._backend.packages.find([chunk.package_id for _, chunk in chunks])
        known = [head for head, _ in found.values()]
        heads: dict[str, Head | None] = {head.package_id: head for head in known}
        heads |= self._placement.restored(known, fit)
        budgets = self._leases.budgets(heads.values())
        leases: list[Lease] = []
        settled: list[str] = []
        unfit: list[tuple[Message, Head]] = []
        for message, chunk in chunks:
            package_id = chunk.package_id
            head = heads.get(package_id)
            left = wanted(head, chunk.start, chunk.end, chunk.generation)
            if head is None or not left:
                if head is not None:
                    self._note_untouched(head, chunk, message)
                settled.append(message.receipt)
            elif withdrawal := _withdrawal(head, chunk, message, left, budgets[package_id]):
                key, event = withdrawal
                heads[package_id] = self._folding.confirm(package_id, key, event)
                settled.append(message.receipt)
            elif not runs(fit, head):
                unfit.append((message, head))
            else:
                start, budget_us = found[package_id][1].start, budgets[package_id]
                leases.append(self._leases.make(request.executors, head, start, message, budget_us))
        # Only now: if this process dies before it has folded the events, the messages must come again.
        if settled:
            self._backend.queue.delete(settled)
        names = {ChunkText.parse(message.body).name for message, _ in unfit}
        came = bool(messages) and not (len(unfit) == len(messages) and names <= put_back)
        put_back.update(names)
        unfit_express = self._placement.put_back(unfit)
        # A repeated attempt may bring the full number of messages from each of two queues. Chunks that do not fit into
        # one answer surface again when their visibility ends.
        packages = frozenset(head.package_id for _, head in unfit)
        return Received(leases[:RETRIEVED_CHUNKS], came, packages, unfit_express)

    def _messages(self, request: RetrieveTasks, fit: Fit, *, express: bool) -> list[Message] | None:
        """Receive messages. None: the queue cannot repeat this attempt, so that the caller needs a new one."""
        most, lease_s = min(request.chunks, RETRIEVED_CHUNKS), self._backend.policy.lease_s
        attempt_id, besides = self._attempts.name(request.attempt_id), frozenset(request.besides)
        try:
            return self._backend.queue.receive(
                most, lease_s, attempt_id, besides, fit, again=request.again, express=express
            )
        except StaleAttempt:
            return None

    def _note_untouched(self, head: Head, chunk: ChunkText, message: Message) -> None:
        """Report to an ended package that no worker has received a chunk before, if this is so.

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
        # several times, and the chunk would look like one that kills its workers.
        return _key("b", chunk), GaveBack(generation=chunk.generation, ranges=left, losses=losses)
    return None


def _key(kind: str, chunk: ChunkText) -> str:
    return f"{kind}#{chunk.start}#{chunk.generation}"
