"""Answers the workers' retrievals."""

from contextlib import suppress

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
from .uncut_packages import UncutPackages

PASSED_OVER = 100
"""Of the packages that a worker cannot run, one request checks at most this many. The next request checks others."""

UNFIT_DELAYS_S = 5.0, 30.0
"""The first and the longest delay, in seconds, of a worker if the queue brings it only chunks that it cannot run. The
delay doubles each time. Only a queue that cannot look into messages brings such chunks. The master takes them out and
puts them back, which costs requests to the queue."""

UNFIT_ROUNDS = 4
"""How many times a request receives from the queue, at most, while it brings only chunks that the worker cannot run.
The limit holds if the worker's last request brought only such chunks, too. The last request has put its chunks back
behind all others, so this request finds other chunks."""


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
        self._uncut = UncutPackages(backend.packages, backend.clock)
        self._unfit = Recent[str, int](REMEMBERED)
        """By worker id: how many of the worker's last requests in a row brought only chunks that it cannot run."""
        self._rounds, self._rounds_aside = RoundRobin(), RoundRobin()

    def answer(self, request: RetrieveTasks) -> RetrieveTasksReply:
        """Hand out chunks. If the queue brings nothing new, widen the windows of packages with uncut tasks.

        A worker that names packages in `besides` has work: no window is widened for it, and it does not count as idle.
        A peek gets no chunks; the reply only says whether chunks of other packages wait.

        Raises:
            Unavailable: See `Receiver.receive`.
        """
        now, fit = self._backend.clock.now(), self._resume(request.worker_id, self._placement.heard(request))
        if request.peek:
            delay = pacing.worker_delay_s(self._idle.count(now))
            return RetrieveTasksReply(waiting=self._others_wait(request, fit), retry_after_s=delay)
        # A busy worker does not depend on this request, so the request stops when chunks come that do not fit.
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
            found = self._receiver.receive(request, fit, rounds, sent=True)
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
        """Return the messages that a worker can take, including those of packages for which all workers are set aside.

        The worker runs the tasks of such a package nevertheless, and their errors say what is missing. Without this
        call, the package would wait until the worker has no other work.
        """
        passed_over = self._backend.queue.passed_over(fit) if fit.set_aside else []
        waiting = [package_id for package_id in passed_over if package_id in fit.set_aside]
        waiting = self._rounds_aside.next(worker_id, waiting, PASSED_OVER)
        return self._placement.widened(fit, waiting) if waiting else fit

    def _others_wait(self, request: RetrieveTasks, fit: Fit) -> bool:
        return self._backend.queue.has_others(frozenset(request.besides), fit)

    def _open_windows(self, request: RetrieveTasks, fit: Fit) -> bool:
        """Cut chunks for idle executors, of at most BULK_ITEMS packages with uncut tasks.

        Returns whether chunks were cut.

        Raises:
            Exception: No chunks were cut, and a package raised this error.
        """
        cut, folds = 0, 0
        failures: list[Exception] = []
        for head in self._uncut.heads(fit):
            folds += 1
            try:
                newest = self._widen(request, head.package_id)
            except Exception as error:  # noqa: BLE001 - any error of one package must not hold up the others
                failures.append(error)
                continue
            if newest is not None and newest.quota.reserve_spent:
                # The account would grant nothing to its other packages either. Without this line, each of them would
                # cost a fold and a request for compute time.
                self._uncut.refused(head.account_id)
            elif newest is not None:
                # The generation of each new chunk is the version of one of the last two folds: one fold cut the chunk,
                # and the next fold noted that the chunk was sent.
                new = sum(newest.version - each.generation <= 1 for each in newest.tasks.open)
                cut += new
                if new:
                    self._uncut.had_turn(head.account_id)
            if cut >= request.executors or folds == BULK_ITEMS:
                break
        if failures and not cut:
            raise failures[0]
        return cut > 0

    def _widen(self, request: RetrieveTasks, package_id: str) -> Head | None:
        """Widen the window of a package, and return its newest head; None if the package is too busy or gone."""
        event = ExecutorsIdle(executors=request.executors)
        with suppress(Unavailable):  # other processes fold this package right now
            return self._folding.advance(package_id, [(f"i#{request.worker_id}#{request.attempt_id}", event)])
        return None
