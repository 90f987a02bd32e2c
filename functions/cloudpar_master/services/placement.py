"""Decides which workers can run a package, and what happens to a package that no worker can run."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from cloudpar_master.core.events import Event, Placed, Stranded
from cloudpar_master.core.head import SET_ASIDE, Head, number_of
from cloudpar_master.ports import Fit, Message, Needs, Sending, WorkerRecord
from cloudpar_protocol import client_messages
from cloudpar_protocol.errors import Forbidden
from cloudpar_protocol.payloads import Unfit
from cloudpar_protocol.worker_messages import RetrieveTasks

from .backend import Backend
from .chunk_text import ChunkText, sending
from .folding import Folding

NAMED = 5
"""If a package fails because no worker has its Python, the package's message names at most this many workers."""

NOT_SERVED = "isolation own: only the default account"
"""Why a worker runs no tasks of an account."""


NETWORKED = (
    "cannot keep its tasks from the network: start it by --isolation shared, on Linux 5.13 or newer with seccomp, in "
    "release 0.4.0 or newer"
)
"""Why a worker runs no tasks of an account whose tasks may not use the network."""


def runs(fit: Fit, head: Head) -> bool:
    """Whether a worker may be handed chunks of a package."""
    if head.life.run_anyway:
        return fit.serves(head.account_id) and fit.has(head.python)
    return fit.takes(needs(head))


def fit_of(request: RetrieveTasks, backend: Backend) -> Fit:
    """Return the messages that a worker can take, as its retrieval says.

    Raises:
        Forbidden: The worker runs only tasks of the default account, and this master has none.
    """
    if request.own and not backend.default_account:
        raise Forbidden(
            "this master has no default account, so a worker with --isolation own has no tasks to run: use shared, or "
            "none if all accounts may read the files of the worker's user"
        )
    account = backend.default_account if request.own else ""
    # A worker of an earlier release would ignore the lease's `network`, and run the tasks with a network.
    refuses = () if request.offline else tuple(sorted(backend.accounts.offline()))
    return Fit(tuple(request.pythons), tuple(request.set_aside), account, refuses=refuses)


def needs(head: Head) -> Needs:
    """Return what a package needs of its workers."""
    return Needs(head.account_id, head.package_id, head.python)


class Placement:
    """Knows the live workers, and decides what happens to packages that none of them can run."""

    def __init__(self, backend: Backend, folding: Folding) -> None:
        self._backend = backend
        self._folding = folding

    def heard(self, request: RetrieveTasks) -> Fit:
        """Record the messages that a worker can take, as its retrieval says, and return them as a `Fit`.

        Raises:
            Forbidden: The worker runs only tasks of the default account, and this master has none.
        """
        fit = fit_of(request, self._backend)
        now = self._backend.clock.now()
        self._backend.registry.note(WorkerRecord(request.worker_id, now, request.host, request.executors, fit))
        return fit

    def beats(self, worker_id: str) -> None:
        """Record that a worker is alive."""
        self._backend.registry.beat(worker_id, self._backend.clock.now())

    def left(self, worker_id: str) -> None:
        """Record that a worker has announced its end, so that no package waits for this worker."""
        self._backend.registry.leave(worker_id)

    def attended(self, head: Head) -> Head:
        """Return a package as its client should see it: without workers that have gone since they published.

        On AWS, reading the registry costs a request. So workers are left out only if the package runs, and if none of
        its workers has published for the time of a lease. For some seconds after the registry was lost, all workers
        stay.
        """
        now = self._backend.clock.now()
        quiet = all(now - member.seen_at > self._backend.policy.lease_s for member in head.pace.fleet.values())
        if head.life.ended or not head.pace.fleet or not quiet or not self._backend.registry.knows_all(now):
            return head
        live = {number_of(worker.worker_id) for worker in self._live()}
        fleet = {number: member for number, member in head.pace.fleet.items() if number in live}
        return replace(head, pace=replace(head.pace, fleet=fleet))

    def widened(self, fit: Fit, passed_over: Sequence[str]) -> Fit:
        """Decide about packages whose chunks do not fit a worker, and return which messages it can take now.

        If each live worker with a package's Python lacks something, the worker now takes chunks of this package
        nevertheless. The worker also takes the queued chunks of packages that have ended: otherwise these chunks would
        stay in the queue until another worker comes, and the queue would not count as empty.
        """
        heads = self._decided(self._backend.packages.heads(passed_over))
        wanted = {head.package_id: head for head in heads if not head.life.ended}
        return fit._replace(
            set_aside=tuple(each for each in fit.set_aside if each not in wanted or not wanted[each].life.run_anyway),
            ended=tuple(each for each in passed_over if each not in wanted),
        )

    def restored(self, heads: Iterable[Head], fit: Fit) -> dict[str, Head | None]:
        """If this worker lacks nothing, decide again about packages that ran although all workers lacked something.

        Returns the newest heads of these packages, by package id.
        """
        found = [head for head in heads if head.life.run_anyway and fit.takes(needs(head))]
        return {head.package_id: head for head in self._decided(found)}

    def put_back(self, unfit: Sequence[tuple[Message, Head]]) -> bool:
        """Put chunks back into the queue, behind all others. Returns whether any of them is `express`.

        Each chunk gets a new message, whose count of deliveries starts again: otherwise a chunk that several workers
        cannot run would look like a chunk that kills its workers. The text of the new message says how many workers
        were lost with the chunk, and since when the chunk waits.
        """
        sendings: list[Sending] = []
        for message, head in unfit:
            chunk = ChunkText.parse(message.body).put_back(message, self._backend.clock.now())
            again = sending(head, chunk, self._backend.policy, express=_is_express(head, chunk))
            sendings.append(again._replace(group=f"{again.body}@{self._backend.ids.fresh()}"))
        if sendings:
            # Send first, then delete: after a crash between the two calls there are two messages for the chunk, which
            # does no harm. In the other order there would be none, although the head says that the chunk was sent.
            sent = self._backend.queue.send(sendings)
            done = [message.receipt for (message, _), is_sent in zip(unfit, sent, strict=True) if is_sent]
            self._backend.queue.delete(done)
        return any(each.express for each in sendings)

    def decided(self, head: Head) -> Head:
        """Decide what happens to a package with the workers that live now, and return its head after that.

        If the package is too busy now, a later fold consumes the decision, and the given head is returned. If a newer
        release has written the head, a master of that release decides.
        """
        (decided,) = self._decided([head])
        return decided

    def _decided(self, heads: Sequence[Head]) -> list[Head]:
        """Decide about packages together, and return their heads after that.

        Before a package is declared stranded, the registry is read again, because the last read may be some seconds
        old: a worker that fits may have come since then.
        """
        workers = self._live() if heads else []
        events = [self._event(head, workers) for head in heads]
        if any(isinstance(event, Stranded) for event in events):
            workers = self._live(newest=True)
            events = [self._event(head, workers) for head in heads]
        return [
            head if event is None else self._confirmed(head, event) for head, event in zip(heads, events, strict=True)
        ]

    def _confirmed(self, head: Head, event: Event) -> Head:
        try:
            return self._folding.confirm(head.package_id, f"s#{head.version}", event) or head
        except Exception:  # noqa: BLE001 - other packages must not wait; a later look decides about this one again
            return head

    def _event(self, head: Head, workers: Sequence[WorkerRecord]) -> Event | None:
        now = self._backend.clock.now()
        workers = [worker for worker in workers if worker.fit.serves(head.account_id)]
        if head.life.ended or head.foreign or not workers:
            return None  # a package waits until a worker comes that serves its account
        if any(worker.fit.takes(needs(head)) for worker in workers):
            return None if head.life.stranded_at is None and not head.life.run_anyway else Placed()
        if not self._backend.registry.knows_all(now):
            return None  # after a restart, a worker that fits may not have reported yet
        if any(worker.fit.has(head.python) for worker in workers):
            return None if head.life.run_anyway else Stranded()
        waits = head.life.stranded_at is not None and now < head.life.stranded_at + self._backend.policy.grace_s
        return None if waits else Stranded(message=_mismatch(head.python, workers))

    def _live(self, *, newest: bool = False) -> Sequence[WorkerRecord]:
        since = self._backend.clock.now() - self._backend.policy.fleet_memory_s
        return self._backend.registry.workers(since, newest=newest)

    def view(self, head: Head) -> client_messages.Placement:
        """Describe to the client of a package which live workers there are, and which of them can run it."""
        workers = self._live()
        others = [worker for worker in workers if not runs(worker.fit, head)]
        lacking = [Unfit(worker.host, _lacks(worker.fit, head)) for worker in others
                   if not worker.fit.serves(head.account_id) or not worker.fit.has(head.python)]  # fmt: skip
        return client_messages.Placement(
            workers=len(workers),
            fitting=len(workers) - len(others),
            python=head.python,
            others=list(dict.fromkeys([*lacking, *head.life.set_aside]))[:SET_ASIDE],
        )


def _is_express(head: Head, chunk: ChunkText) -> bool:
    """Whether a chunk goes by the express queue, as its head says. False if workers were lost with the chunk."""
    near = (head.tasks.open[at] for at in head.tasks.among([(chunk.start, chunk.end)]))
    return not chunk.losses and any(each.express for each in near if each.generation == chunk.generation)


def _lacks(fit: Fit, head: Head) -> str:
    if head.account_id in fit.refuses:
        return NETWORKED
    return f"only {_versions(fit.pythons)}" if fit.serves(head.account_id) else NOT_SERVED


def _mismatch(python: str, workers: Iterable[WorkerRecord]) -> str:
    """Say why no worker can run a package that needs this Python, and what to do."""
    have = sorted({each for worker in workers for each in worker.fit.pythons}, key=lambda text: (len(text), text))
    there = list(
        dict.fromkeys(f"{worker.host or 'a worker'} has {_versions(worker.fit.pythons)}" for worker in workers)
    )
    more = f" and {len(there) - NAMED} more" if len(there) > NAMED else ""
    return (
        f"the package was made by Python {python}, and no connected worker runs Python {python} "
        f"({'; '.join(there[:NAMED])}{more}): use {_versions(have, ' or ')} at the client, or start workers with "
        f"Python {python}"
    )


def _versions(pythons: Sequence[str], link: str = " and ") -> str:
    """Format versions of Python for people.

    >>> _versions(["3.11", "3.12", "3.13"])
    'Python 3.11, 3.12 and 3.13'
    """
    *others, last = pythons
    return f"Python {', '.join(others)}{link}{last}" if others else f"Python {last}"
