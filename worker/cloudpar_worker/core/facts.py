"""The state of the agent's state machine, and the changes to it that the handlers of several stimuli share."""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from cloudpar_protocol.limits import BULK_ITEMS
from cloudpar_protocol.one_line import one_line
from cloudpar_protocol.payloads import LACKS_CHARS, TaskResult, Unfit
from cloudpar_protocol.worker_messages import Lease

from . import instructions as do
from .budgets import Budgets
from .durations import FunctionLengths, PackageDurations
from .executor_record import ExecutorRecord, Stop
from .lease_record import LeaseRecord
from .turns import Turns

NEVER: Final = 2**62
"""A time that never comes. A variable that holds the time of an action has this value while no such action is planned.
"""

PAUSE_US: Final = 1_000_000
"""The length of the first pause of a worker that gave back suspects, in microseconds. In the pause the worker retrieves
nothing while one of its leases has started tasks; see `suspects`.
"""


class SetAside(NamedTuple):
    """The account of a package that is set aside, and the thing that this worker lacks for it."""

    account: str
    unfit: Unfit


class Facts:
    """The whole state of the agent's state machine (WorkerState).

    Attributes:
        wanted_executors: The number of executors that run at a time; a setting of the worker.
        memory_bytes: The memory limit of one executor; a setting of the worker.
        host: The name of this machine.
        shared: Whether the worker runs tasks of several people. If so, no process of a task may outlive the task.
        pythons: The versions of Python for which this worker has interpreters that start.
        python: The version of Python for the next executor.
        leases: The leases by id, in the order in which they came.
        set_aside: The packages that this worker cannot run, by id, in the order in which they were set aside. There are
            at most BULK_ITEMS of them: a further package replaces an earlier one.
        lengths: The mean durations of functions, for later packages with these functions.
        killed: For each task (lease id, index), the number of executors that SIGKILL or an unknown cause ended during
            the task.
        unreported_us: For each package id, how long the package's publications took, as far as no later publication has
            reported this time.
        spawn_at_us, retrieve_at_us, beat_at_us, measure_at_us: The earliest times of the next start of an executor, of
            the next retrieval, of the next beat and of the next measurement.
        resume_at_us: The end of the pause after a give-back of suspects (see PAUSE_US).
        pause_us: The length of the next such pause.
        retrieving, peeking, fetching, beating: Whether a request of this kind is under way. A fetch retrieves chunks of
            packages of which this worker has no waiting tasks.
        publish_jobs: The number of Publish instructions that the agent is carrying out. The key is the account whose
            large results they upload; the key None is for those that upload nothing.
        holds: Whether the master holds requests.
        others_wait: Whether chunks of packages that have no waiting tasks here may wait at the master. It is False
            again when the worker has sent a fetch.
        peek_at_us: The earliest time of the next peek.
        fetch_ends_at_us: The time until which free executors wait for the chunks of a fetch under way. While they wait,
            they start no long tasks except first tasks of packages.
        publish_now: Whether the pending results are urgent, because a client may be waiting for them, or an account's
            quota may be used up.
        chunk_us: The expected duration of the chunk that came last; 0 if unknown.
        nested: Whether tasks wait for tasks of their own, or did so recently.
        last_nested_at_us: The last time at which a task waited for tasks of its own.
        hungry: Whether this worker should give back tasks. True if the master's last answer to a publication or a beat
            said that other workers are idle, and this worker has not given back tasks for them since.
        drain_started_at_us: The start of the drain; None before it.
        last_busy_at_us: During a drain, the last time at which executors had tasks, or the start of the drain if that
            is later.
        gave_up: Whether the drain has waited too long for the master. If so, the agent ends and leaves results
            unpublished.
        exited: Whether the instruction to end the agent has been given.
        out: The instructions that have been given so far for the present stimulus.
        decided_at_us: The time of the last call of `decide`.
        deadline_at_us: The time of the next call of `decide` if no stimulus comes earlier.
    """

    def __init__(
        self, *, executors: int, memory_bytes: int, pythons: Sequence[str], host: str = "", shared: bool = False
    ) -> None:
        self.host, self.shared = host, shared
        self.wanted_executors = executors
        self.memory_bytes = memory_bytes
        self.pythons = list(pythons)
        self.python = pythons[0]
        self.leases: dict[str, LeaseRecord] = {}
        self.executors: dict[int, ExecutorRecord] = {}
        self.durations: dict[str, PackageDurations] = {}
        self.lengths = FunctionLengths()
        self.budgets = Budgets()
        self.set_aside: dict[str, SetAside] = {}
        self.turns = Turns()
        self.killed: dict[tuple[str, int], int] = {}
        self.unreported_us: dict[str, int] = {}
        self.next_executor = 0
        self.failed_starts = 0
        self.spawn_at_us = self.retrieve_at_us = self.resume_at_us = 0
        self.pause_us = PAUSE_US
        self.beat_at_us = self.measure_at_us = NEVER
        self.retrieving = self.peeking = self.fetching = self.beating = False
        self.holds = self.others_wait = False
        self.peek_at_us = self.fetch_ends_at_us = 0
        self.publish_jobs = Counter[str | None]()
        self.publish_now = False
        self.chunk_us = 0.0
        self.nested, self.last_nested_at_us = False, 0
        self.hungry = False
        self.drain_started_at_us: int | None = None
        self.last_busy_at_us = 0
        self.gave_up = self.exited = False
        self.out: list[do.Instruction] = []
        self.deadline_at_us = self.decided_at_us = 0

    def durations_of(self, lease: Lease) -> PackageDurations:
        """Return the durations of the tasks of a lease's package."""
        durations = self.durations.get(lease.package_id)
        if durations is None:
            suggested_us = lease.mean_us or self.lengths.mean_us(lease)
            durations = self.durations[lease.package_id] = PackageDurations(suggested_us)
        return durations

    @property
    def busy(self) -> bool:
        """Whether an executor has tasks."""
        return any(record.fed for record in self.leases.values())

    def finish(self, record: LeaseRecord, results: Sequence[TaskResult], now_us: int) -> None:
        """Record the results of tasks that an executor got in one run. The results are in the order of the tasks."""
        lease = record.lease
        total_us = sum([result.duration_us for result in results])
        durations = self.durations_of(lease)
        durations.measured(total_us, len(results))
        self.lengths.measured(lease, durations.mean_us)
        owed_us = self.budgets.pay(lease.account)
        if owed_us:
            # Without this addition, a task could compute for free: it would only have to end its executor before it
            # returns.
            results = [replace(results[0], duration_us=results[0].duration_us + owed_us), *results[1:]]
            total_us += owed_us
        self.budgets.used(lease.package_id, total_us)
        self.turns.ran(lease, total_us)
        self.out += [do.Discard(lease.lease_id, used) for used in record.finished(results, now_us)]

    def retrieve(self, chunks: int, hold_s: float, besides: Sequence[str] = (), *, peek: bool = False) -> None:
        """Request chunks from the master or, for a peek, an answer that only says whether chunks wait."""
        pythons, set_aside = list(self.pythons), list(self.set_aside)
        idle = not self.leases
        self.out.append(do.Retrieve(chunks, hold_s, self.host, pythons, set_aside, list(besides), peek, idle))

    def publish_ended(self, account: str | None) -> None:
        """Record the end of a Publish instruction. `account` is the key under which `publish_jobs` counts it."""
        self.publish_jobs[account] -= 1
        if not self.publish_jobs[account]:
            del self.publish_jobs[account]  # otherwise the agent would remember each account that ever uploaded

    def kill(self, executor: ExecutorRecord, stop: Stop) -> None:
        """Kill an executor for the reason `stop`, unless it is being killed already."""
        if executor.stop is None:
            executor.stop = stop
            self.out.append(do.Kill(executor.executor_id))

    def lacks_python(self, record: LeaseRecord) -> None:
        """Handle a lease whose version of Python this worker lacks.

        If another worker may run the lease, this worker sets the package aside. Otherwise the package fails, and its
        error names the missing version.
        """
        if record.lease.elsewhere:
            self.set_package_aside(record.lease, f"no Python {record.lease.python}")
            return
        have = sorted(self.pythons, key=lambda version: (len(version), version))
        names = ", ".join(have[:-1]) + " or " + have[-1] if have[1:] else have[0]
        record.refuse(
            "python",
            f"the package was made by Python {record.lease.python}, this worker's executors run Python {names}: "
            f"use Python {names} at the client, or start workers with Python {record.lease.python}",
        )

    def _forget_set_aside(self) -> None:
        """Forget a package that is set aside: of the account with the most such packages, the one set aside first.

        Otherwise one account could make the worker forget the packages of all other accounts. The worker would then
        retrieve tasks of those packages again and again.
        """
        accounts = [each.account for each in self.set_aside.values()]
        busiest = max(accounts, key=accounts.count)
        del self.set_aside[next(package_id for package_id, each in self.set_aside.items() if each.account == busiest)]

    def set_package_aside(self, lease: Lease, lacks: str) -> None:
        """Stop running a package here, because this worker lacks something for it.

        The worker requests no more chunks of the package. It gives back the package's untouched tasks (no executor has
        them). If no other worker can run a lease of the package, the worker keeps that lease's tasks.
        """
        package_id = lease.package_id
        if package_id not in self.set_aside:
            # The text comes from the executor, so task code may have made it. Without `one_line` the text could control
            # the terminals on which people read it, and the master would refuse a give-back whose text is too long.
            lacks = one_line(lacks, LACKS_CHARS)
            text = f"this worker cannot run package {package_id}, and leaves it to workers that can: {lacks}"
            self.out.append(do.Warn(text))
            if len(self.set_aside) >= BULK_ITEMS:
                self._forget_set_aside()
            self.set_aside[package_id] = SetAside(lease.account, Unfit(self.host, lacks))
        for record in self.leases.values():
            if record.lease.package_id == package_id and record.lease.elsewhere:
                record.unfit = self.set_aside[package_id].unfit

    def forget(self, record: LeaseRecord) -> None:
        """Drop a lease. If it was the last lease of its package here, also drop all facts about the package."""
        lease = record.lease
        del self.leases[lease.lease_id]
        self.out.append(do.Forget(lease.lease_id))
        self.budgets.owe(lease.account, record.lost_us)  # no give-back of this lease can report this time any more
        if self.killed:
            self.killed = {key: kills for key, kills in self.killed.items() if key[0] != lease.lease_id}
        others = [other.lease for other in self.leases.values()]
        if all(other.package_id != lease.package_id for other in others):
            self.durations.pop(lease.package_id, None)
            self.unreported_us.pop(lease.package_id, None)
            self.budgets.forget(lease.package_id)
