"""Answers retrievals."""

from collections.abc import Iterator, Sequence
from itertools import islice

from cloudpar_master.core import pacing
from cloudpar_master.core.events import ExecutorsIdle
from cloudpar_master.core.head import Head
from cloudpar_master.core.recent import Recent
from cloudpar_master.ports import Fit
from cloudpar_protocol.errors import Unavailable
from cloudpar_protocol.limits import BULK_ITEMS
from cloudpar_protocol.worker_messages import RetrieveTasks, RetrieveTasksReply

from .backend import Backend
from .folding import Folding
from .idle_workers import IdleWorkers
from .placement import Placement
from .receiver import STALE_ROUNDS, Receiver
from .round_robin import REMEMBERED, RoundRobin

PASSED_OVER = 100
"""Of the packages that a worker cannot run, one request checks at most this many. The next request checks others."""

UNCUT = 25
"""How many heads of packages with uncut tasks are read together. Mostly the first one already fits the worker."""

MOST_UNCUT = 1_000
"""How many packages with uncut tasks one request checks at most if the first BULK_ITEMS do not cut enough chunks. Only
the heads of most of them are read: a request folds at most BULK_ITEMS."""

UNFIT_DELAYS_S = 5.0, 30.0
"""The first and the longest delay, in seconds, of a worker if the queue brings it only chunks that it cannot run. The
delay doubles each time. Such a queue cannot look into messages: the master takes the chunks out and puts them back,
which costs requests to the queue."""

UNFIT_ROUNDS = 4
"""How many times a request receives from the queue, at most, if this worker's last request brought only chunks that the
worker cannot run, and this one does, too. The last request has put its chunks back behind all others, so this request
finds other ones."""


class Retrieval:
    """Hands out chunks, widens windows for idle executors, and says when a worker should send its next request."""

    def __init__(
        self, backend: Backend, folding: Folding, placement: Placement, receiver: Receiver, idle: IdleWorkers
    ) -> None:
        self._backend = backend
        self._folding = folding
        self._placement = placement
        self._receiver = receiver
        self._idle = idle
        self._unfit = Recent[str, int](REMEMBERED)
        """By worker id: how many of the worker's last requests in a row brought only chunks that it cannot run."""
        self._rounds, self._rounds_aside = RoundRobin(), RoundRobin()

    def answer(self, request: RetrieveTasks) -> RetrieveTasksReply:
        """Hand out chunks. If the queue brings nothing new, widen the windows of packages with uncut tasks.

        A worker that names packages in `besides` has work: no window is widened for it, and it does not count as idle.
        A peek gets no chunks; the reply only says whether chunks of other packages wait.

        Raises:
            Unavailable: A package is too busy now, a master of a newer release has written its head, or an account's
                key is not available. The worker should repeat the request.
        """
        now, fit = self._backend.clock.now(), self._resume(request.worker_id, self._placement.heard(request))
        if request.peek:
            delay = pacing.worker_delay_s(self._idle.count(now))
            return RetrieveTasksReply(waiting=self._others_wait(request, fit), retry_after_s=delay)
        # A busy worker does not depend on this request, so it stops when chunks come that do not fit.
        rounds = 1 if request.besides else UNFIT_ROUNDS if request.worker_id in self._unfit else STALE_ROUNDS
        found = self._receiver.receive(request, fit, rounds)
        if request.besides:
            return RetrieveTasksReply(leases=found.leases, waiting=self._others_wait(request, fit))
        if not found.leases:
            passed_over = found.unfit or self._backend.queue.passed_over(fit)
            passed_over = self._rounds.next(request.worker_id, passed_over, PASSED_OVER)
            wider = self._placement.widened(fit, passed_over) if passed_over else fit
            if wider != fit:
                fit = wider
                found = self._receiver.receive(request, fit, rounds)
        if not found.came and self._open_windows(request, fit):
            found = self._receiver.receive(request, fit, rounds)
        self._idle.note(request.worker_id, now, fit, idle=not found.leases)
        delay = 0.0 if found.came and not found.unfit else pacing.worker_delay_s(self._idle.count(now))
        unfit_delay = self._unfit_delay_s(request.worker_id, only_unfit=bool(found.unfit) and not found.leases)
        return RetrieveTasksReply(leases=found.leases, retry_after_s=max(delay, unfit_delay))

    def _unfit_delay_s(self, worker_id: str, *, only_unfit: bool) -> float:
        before = self._unfit.pop(worker_id, 0)
        if not only_unfit:
            return 0.0
        self._unfit[worker_id] = before + 1
        shortest_s, longest_s = UNFIT_DELAYS_S
        return min(shortest_s * (1 << min(before, 10)), longest_s)

    def _resume(self, worker_id: str, fit: Fit) -> Fit:
        """Return what a worker can run. A package for which it is set aside is included if no other worker can run it.

        The worker runs such a package anyway, and the package's errors say what is missing. Without this, the package
        would wait until the worker has nothing else to do.
        """
        passed_over = self._backend.queue.passed_over(fit) if fit.set_aside else []
        waiting = [package_id for package_id in passed_over if package_id in fit.set_aside]
        waiting = self._rounds_aside.next(worker_id, waiting, PASSED_OVER)
        return self._placement.widened(fit, waiting) if waiting else fit

    def _others_wait(self, request: RetrieveTasks, fit: Fit) -> bool:
        return self._backend.queue.has_others(frozenset(request.besides), fit)

    def _open_windows(self, request: RetrieveTasks, fit: Fit) -> bool:
        """Let at most BULK_ITEMS packages with uncut tasks cut chunks for idle executors.

        Returns whether chunks were cut.
        """
        cut = 0
        for package_id in islice(self._uncut_for(fit), BULK_ITEMS):
            event = ExecutorsIdle(executors=request.executors)
            try:
                head = self._folding.advance(package_id, [(f"i#{request.worker_id}#{request.attempt_id}", event)])
            except Unavailable:
                continue  # other processes fold this package right now
            # The generation of each new chunk is the version of one of the last two folds: one fold cut the chunk, and
            # the next one noted that it was sent.
            if head is not None and not head.quota.reserve_spent:
                cut += sum(head.version - each.generation <= 1 for each in head.tasks.open)
            if cut >= request.executors:
                break
        return cut > 0

    def _uncut_for(self, fit: Fit) -> Iterator[str]:
        """Yield packages with uncut tasks that a worker can run, oldest first.

        It leaves out packages that have spent their reserve and wait until they may request compute time again. They
        cut nothing, so each fold of them would be useless, and many of them would hide all younger packages.
        """
        now = self._backend.clock.now()
        for head in self._uncut(fit):
            waits = head.quota.reserve_spent and head.quota.ask_again_at > now
            if fit.serves(head.account_id) and fit.has(head.python) and not waits:
                yield head.package_id

    def _uncut(self, fit: Fit) -> Iterator[Head]:
        """Yield the heads of packages with uncut tasks, oldest first, without those for which a worker is set aside.

        If the first BULK_ITEMS are not enough, a worker that serves a single account continues with all packages of
        this account, and any other worker with those up to MOST_UNCUT.
        """
        packages = self._backend.packages
        first = packages.uncut(BULK_ITEMS)
        yield from self._heads(first, fit)
        if len(first) < BULK_ITEMS:
            return
        if fit.account:
            rest = sorted(packages.unsettled(fit.account), key=lambda head: head.started_at)
            checked = {*first, *fit.set_aside}
            yield from (head for head in rest if head.uncut and head.package_id not in checked)
        else:
            yield from self._heads(packages.uncut(MOST_UNCUT)[len(first) :], fit)

    def _heads(self, package_ids: Sequence[str], fit: Fit) -> Iterator[Head]:
        """Read heads as the caller iterates, without those of packages for which a worker is set aside."""
        wanted = [each for each in package_ids if each not in fit.set_aside]
        for start in range(0, len(wanted), UNCUT):
            yield from self._backend.packages.heads(wanted[start : start + UNCUT])
