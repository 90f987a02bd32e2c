"""One executor as the state machine sees it: its tasks, their times, and why it is being stopped."""

from collections import deque
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from cloudpar_protocol.errors import Outcome
from cloudpar_protocol.worker_messages import Lease

from .executor_result import SKIPPED, UNFIT, ExecutorResult
from .lease_record import LeaseRecord

LATENCY_US: Final = 2_000
"""An executor may report less time than the agent's clock shows. The permitted difference is 5 % of the time that the
clock shows, plus three allowances. The first allowance is this many microseconds each time that the idle executor gets
tasks, because a busy machine wakes it up late. The other two are TASK_LATENCY_US and BYTES_A_US. The rest of the
difference is charged.
"""
TASK_LATENCY_US: Final = 15
"""The allowance for each task, in microseconds: about what an executor on a busy machine needs for a task that does
nothing. With a larger allowance, task code that changes the executor's clock could compute for free in many tiny tasks.
"""
BYTES_A_US: Final = 200
"""The allowance for data and results is one microsecond for this many bytes. An executor transfers at least this many
bytes in a microsecond.
"""
SKIP_US: Final = 1_000_000
"""The agent kills an executor that does not skip recalled tasks within this time, in microseconds. The executor's own
code skips a task in some microseconds. If skipping takes this long, task code prevents it.
"""
CODES: Final = 500
"""The agent replaces an executor that has got this many different functions, as soon as the executor is idle. The
executor's memory keeps the modules of all these functions.
"""


class FedRun(Struct):
    """Tasks of one lease that an executor got together; `next` is the first of them that has no result."""

    record: LeaseRecord
    next: int
    end: int
    recalled: bool = False
    """Whether the tasks of the run are back in their lease, so that the executor will skip them."""


class Stop(Struct, frozen=True):
    """The reason for killing an executor.

    The task with this `lease_id` and `index` gets a result with `outcome`. If `outcome` is None, the kill gives no task
    a result.
    """

    outcome: Outcome | None = None
    message: str = ""
    lease_id: str = ""
    index: int = -1


class ExecutorRecord:
    """What the state machine knows about one executor: its tasks, and their times by the agent's clock.

    Attributes:
        python: The executor's version of Python.
        ready: Whether it has started and can get tasks.
        account: The account of all tasks that it has got; None if it has got no tasks.
        threads: The thread limit, which is the same for all its tasks, because libraries read it only once, when they
            are loaded. None if the packages of its tasks set no limit, or if it has got no tasks.
        network: Whether its tasks may use the network ("outbound") or not ("none"). This never changes once the
            executor has had a task, for two reasons: the executor cannot remove the restriction "none", and tasks with
            "outbound" may have left connections that a task with "none" could use.
        runs: Its tasks without results, in order. The executor skips the tasks of recalled runs.
        last_package_id: The package of its last results.
        stop: The reason for killing it; None if it is not being killed.
        started_at_us: The approximate start of the running task, by the agent's clock: the time at which the agent fed
            the task or received the result of the task before it, whichever is later.
        awaits: Whether the running task waits for tasks of its own; `awaits_at_us` is the time at which the last such
            wait started.
        memory_bytes: Its memory at the last measurement.
        needs_measuring: Whether it gets no more tasks until a further measurement. True if a task ran at the last
            measurement, and the executor held more than OVERSIZED_PART of its memory limit or (on a shared worker only)
            the task had processes. False again when a measurement shows less memory and no processes, or when the
            executor is measured while it is idle.
        idle_cpu: The agent's time and the executor's CPU time at the first measurement since it has been idle, both in
            microseconds. None if there was no such measurement.
        cpu: The same two times at the last measurement with a running task. None if there was no such measurement.
        computes: Whether it computed before the last measurement, although its task may say that it waits.
        light: Whether it has the lowest weight (`nesting.lightest`).
        proven: Whether it has returned a result.
        codes: The hashes of the task code that it has got.
        recalled_at_us: The time of the last recall of its queued tasks. None if there was no recall, or if the agent
            already knows whether the executor skips the recalled tasks.
    """

    def __init__(self, executor_id: int, python: str) -> None:
        self.executor_id = executor_id
        self.python = python
        self.ready = False
        self.account: str | None = None
        self.threads: int | None = None
        self.network = "outbound"
        self.runs: deque[FedRun] = deque()
        self.last_package_id = ""
        self.stop: Stop | None = None
        self.started_at_us = 0
        self.awaits = False
        self.awaits_at_us = self.memory_bytes = 0
        self.needs_measuring = False
        self.idle_cpu: tuple[int, int] | None = None
        self.cpu: tuple[int, int] | None = None
        self.computes = self.light = False
        self.proven = False
        self.codes: set[str] = set()
        self.recalled_at_us: int | None = None
        self._fed_tasks = 0
        self._recalled = (0, 0)
        self._skippable = (0, 0)
        self._busy_at_us = self._real_at_us = 0
        self._charged_us = self._uncharged_us = self._owed_us = 0
        self._latency_us = self._carried_bytes = 0

    @property
    def usable(self) -> bool:
        """Whether the executor has started and is not being stopped."""
        return self.ready and self.stop is None

    def serves(self, lease: Lease) -> bool:
        """Whether the executor may run tasks of a lease.

        All its tasks have the same account, the same thread limit and the same value of `network`. With codec "pickle"
        it also needs the lease's version of Python.
        """
        # The memory of a process keeps what earlier tasks left: in the same process, task code could read another
        # account's data.
        wanted = lease.account, lease.threads_per_task, lease.network
        if self.account is not None and (self.account, self.threads, self.network) != wanted:
            return False
        return self.python == lease.python or lease.codec != "pickle"

    @property
    def worn(self) -> bool:
        """Whether the executor has got so many functions (CODES) that a fresh executor should replace it."""
        return len(self.codes) >= CODES

    @property
    def running(self) -> FedRun | None:
        """The first run that is not recalled. If there is no such run, the executor is idle, and the result is None.

        The running task is in this run, unless the executor still has to skip the tasks of a recalled run before it.
        """
        # The tasks of a recalled run are back in their lease and may run elsewhere. If such a task counted as running
        # here, stopping this executor would give the task a result, although another executor may run the task. The
        # lease would then close without the result of that other run.
        for run in self.runs:  # a generator would take three times as long, and each decision reads this property often
            if not run.recalled:
                return run
        return None

    @property
    def disobeys_at_us(self) -> int | None:
        """The time by which the executor must have skipped the recalled run at the front of `runs`.

        After this time the agent kills the executor. None if the run at the front is not recalled.
        """
        # Skipped tasks do not extend this time. Otherwise task code could compute between two skips, for as many
        # seconds as tasks were recalled.
        return self._real_at_us + SKIP_US if self.runs and self.runs[0].recalled else None

    @property
    def depth(self) -> int:
        """The nesting depth of the running task; -1 if none runs."""
        run = self.running
        return run.record.lease.depth if run else -1

    def position(self) -> tuple[str, int]:
        """Return the lease id and the index of the running task; ("", -1) if none runs."""
        run = self.running
        return (run.record.lease.lease_id, run.next) if run else ("", -1)

    def expects(self, results: list[ExecutorResult]) -> bool:
        """Whether the executor's own code can have sent these results; they must be of its next tasks, in order.

        The executor's own code skips only recalled tasks, and it skips all tasks of a recalled run. It reports that the
        worker lacks something (UNFIT) only if another worker can run the package.
        """
        offset = 0
        first, end = self._skippable
        if SKIPPED in [result.outcome for result in results]:
            for count, result in enumerate(results, self.started - 1):
                if result.outcome == SKIPPED and not first <= count < end:
                    return False  # otherwise a task could report itself as skipped, and so run without a charge
        for run in self.runs:
            part = results[offset : offset + run.end - run.next]
            if [result.index for result in part] != list(range(run.next, run.next + len(part))):
                return False
            said = {result.outcome for result in part}
            # The tasks of a recalled run are back in their lease: any other result of such a task would be neither
            # published nor charged.
            if run.recalled and said - {SKIPPED}:
                return False
            # If no other worker can run the task, it would run here again and again, and could compute for free.
            if UNFIT in said and not run.record.lease.elsewhere:
                return False
            offset += len(part)
            if offset == len(results):
                return True
        return offset == len(results)

    def queued(self) -> int:
        """Return the number of tasks behind the executor's first task without a result, including recalled tasks."""
        return sum([run.end - run.next for run in self.runs]) - 1 if self.runs else 0

    def feed(self, record: LeaseRecord, start: int, end: int, now_us: int) -> None:
        """Record that the executor was sent the tasks [start, end) of a lease."""
        if not self.runs:
            self.idle_cpu = None  # from now on the executor computes for this task
            self.started_at_us = self._real_at_us = now_us
            # `_busy_at_us` becomes the time at which the executor got its first task, moved forward by all the time for
            # which the executor was idle. So the sums of `audit` cover all feeds together, and LATENCY_US need only
            # cover a usual late start. If the sums started from zero at each feed, LATENCY_US would have to cover the
            # longest late start, and task code could compute for that long without charge in each of many small
            # packages.
            self._busy_at_us = now_us - self._charged_us - self._uncharged_us
            self._latency_us += LATENCY_US
        lease = record.lease
        self.account, self.threads, self.network = lease.account, lease.threads_per_task, lease.network
        self.codes.add(record.lease.code.hash)
        self._fed_tasks += end - start
        self._carried_bytes += record.item_bytes * (end - start)
        self.runs.append(FedRun(record, start, end))

    def has_queued(self) -> bool:
        """Whether tasks wait behind the running one.

        Recalled tasks do not count. While the executor still has to skip a recalled run at the front, the tasks behind
        that run do not count either.
        """
        if not self.runs or self.runs[0].recalled:
            return False
        first, *others = self.runs
        return first.next + 1 < first.end or any(not run.recalled for run in others)

    @property
    def started(self) -> int:
        """The number of tasks that the executor has started or skipped, as far as its results show."""
        return self._fed_tasks - self.queued()

    def recall(self, now_us: int) -> tuple[int, int]:
        """Record that the executor's queued tasks are being recalled; return their numbers [first, end).

        The first task that the executor ever got is number 0. The runs count as recalled only after `take_back`, which
        the agent calls once it knows that the executor skips all these tasks.
        """
        self.recalled_at_us = now_us
        self._recalled = (self.started, self._fed_tasks)
        # SKIPPED results for an earlier recall may still be unread in the executor's channel, so they stay valid.
        first, end = self._skippable
        self._skippable = (first if end >= self.started else self.started, self._fed_tasks)
        return self._recalled

    def skips_all(self, started: int) -> bool:
        """Whether the executor will skip all recalled tasks.

        It skips them all if it has neither started nor got a task since the recall. `started` is the number of started
        tasks that the executor shows on its recall page (see executor/recall.py).
        """
        # The page, the results and the recall must name the same task. If the executor had started another task before
        # it saw the recall, `take_back` would make that task run twice, here and in another executor.
        return self._recalled == (started, self._fed_tasks) and self.started == started

    def take_back(self) -> list[FedRun]:
        """Mark the runs of all queued tasks as recalled, and return those that were not recalled before.

        The recalled runs stay in `runs`, because the executor still reports that it skips their tasks.
        """
        first, *others = self.runs
        queued = [run for run in others if not run.recalled]
        if first.next + 1 < first.end:
            tail = FedRun(first.record, first.next + 1, first.end)
            first.end = first.next + 1
            self.runs = deque([first, tail, *others])
            queued.insert(0, tail)
        # Recalled runs stay where they are in `runs`: the executor sends a SKIPPED result for each of their tasks, in
        # order. Without the runs `expects` would reject these results, and the agent would kill the executor.
        for run in queued:
            run.recalled = True
        return queued

    def advance(self, tasks: int) -> None:
        """Record that the first `tasks` tasks of the first run have results."""
        self.awaits = False
        run = self.runs[0]
        self.last_package_id = run.record.lease.package_id
        run.next += tasks
        if run.next == run.end:
            self.runs.popleft()
        self.proven = True

    def audit(self, results: list[ExecutorResult], absent_at_us: int, now_us: int) -> list[ExecutorResult]:
        """Return the results with the durations that will be charged.

        The executor itself measures the durations in `results`. The agent corrects them by two bounds on the sum of all
        durations since the executor's start. Both bounds use the agent's clock and leave out the time for which the
        executor was idle. Upper bound: the sum may not exceed the time until now. Lower bound: except for latencies,
        the sum may not be less than the time until `absent_at_us`. At `absent_at_us` these results had not arrived yet,
        so the executor was certainly working until then. Without the lower bound task code could change the executor's
        clock and compute for free.

        Skipped tasks are not charged. If the sum is too small and all results are of skipped tasks, the missing time is
        charged with the next task that is not skipped, or when the executor ends (`unpaid_us`). Otherwise task code
        could compute for free before it reports that it skips a task.
        """
        real = [number for number, result in enumerate(results) if result.outcome != SKIPPED]
        claimed = sum([results[number].duration_us for number in real])
        # The difference may be negative: each task is charged at least one microsecond, so many tiny tasks may have
        # been charged more time than has passed.
        at_most = max(now_us - self._busy_at_us - self._charged_us, 0)
        if claimed > at_most:
            results = [
                replace(result, duration_us=max(result.duration_us * at_most // claimed, 1)) for result in results
            ]
            claimed = sum([results[number].duration_us for number in real])
        self._latency_us += len(results) * TASK_LATENCY_US
        self._carried_bytes += sum([len(result.data) for result in results if result.data])
        observed = absent_at_us - self._busy_at_us
        # The difference may be negative here, too: these results may have arrived a while after `absent_at_us`. A
        # negative difference must not become credit for later tasks, because the executor did work in this while.
        self._uncharged_us = max(observed - self._charged_us - claimed, 0)
        permitted = self._latency_us + observed // 20 + self._carried_bytes // BYTES_A_US
        missing = max(self._uncharged_us - permitted, 0)
        if missing and real:
            results = results.copy()
            results[real[0]] = replace(results[real[0]], duration_us=results[real[0]].duration_us + missing)
            claimed += missing
            self._uncharged_us -= missing
        self._owed_us = 0 if real else missing
        self._charged_us += claimed
        self.started_at_us = now_us
        self._real_at_us = now_us if real else self._real_at_us
        return results

    def unpaid_us(self, now_us: int) -> int:
        """Return the time for which the executor's tasks computed and that no result reports.

        This time is charged after the executor's end. The agent measures it, because task code may have kept the
        executor from reporting it.
        """
        return self._owed_us + (now_us - self.started_at_us if self.runs else 0)
