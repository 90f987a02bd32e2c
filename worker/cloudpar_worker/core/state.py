"""The agent's state machine: it gets stimuli (what has happened) and returns instructions (what the agent must do).

It uses no sockets, threads or clocks. The tasks of a lease wait until the state machine feeds them to executors, in
small groups of consecutive tasks (runs). Their results are collected and published in bulk.

For each stimulus there is a handler. The handler changes the facts, which are the state of the machine, and gives some
instructions itself. The module `decisions` then derives all other instructions from the new facts.
"""

import signal
from collections.abc import Callable, Sequence
from typing import Any

from cloudpar_protocol import ranges
from cloudpar_protocol.payloads import TaskResult, Unfit
from cloudpar_protocol.worker_messages import Lease, LeaseView

from . import instructions as do
from . import nesting, outcomes
from . import stimuli as on
from .decisions import decide, decide_after_results, give_up
from .executor_record import ExecutorRecord, FedRun, Stop
from .executor_result import SKIPPED, UNFIT, ExecutorResult
from .facts import PAUSE_US, Facts
from .feeding import linger_us
from .lease_record import LeaseRecord
from .master_policy import beat_us, renewed
from .peeking import PEEK_AGAIN_US, overtakes
from .supervision import DESCRIPTORS, IDLE_CPU_US, MEASURE_US, OUTPUT_LIMIT_BYTES, OVERSIZED_PART
from .suspects import is_suspect

NETWORKED = "cannot keep tasks from the network: start it by --isolation shared, on Linux 5.13 or newer with seccomp"
"""The reason that a worker gives when it does not run the tasks of an account without a network."""

_Handler = Callable[[Any, int], None]


class WorkerState:
    """The agent's state. `facts` is public so that tests and the agent can read it."""

    def __init__(
        self,
        *,
        executors: int,
        memory_bytes: int,
        pythons: Sequence[str],
        host: str = "",
        shared: bool = False,
        offline: bool = False,
    ) -> None:
        self.facts = Facts(executors=executors, memory_bytes=memory_bytes, pythons=pythons, host=host, shared=shared)
        self._offline = offline
        self._handlers: dict[type, _Handler] = {
            on.ExecutorReady: self._ready,
            on.Results: self._results,
            on.TaskWaits: self._task_waits,
            on.GarbageReceived: self._garbage,
            on.ExecutorGone: self._gone,
            on.PythonFailed: self._python_failed,
            on.RecallChecked: self._recall_checked,
            on.Measured: self._measured,
            on.Retrieved: self._retrieved,
            on.Peeked: self._peeked,
            on.Downloaded: self._downloaded,
            on.DownloadFailed: self._download_failed,
            on.TooLarge: self._too_large,
            on.Published: self._published,
            on.Extended: self._extended,
            on.GivenBack: self._given_back,
            on.DrainRequested: self._drain,
            on.RequestFailed: lambda stimulus, now_us: give_up(self.facts, stimulus.stalled_us, now_us),
            on.TimePassed: lambda _stimulus, _now_us: None,
        }

    @property
    def deadline_at_us(self) -> int:
        """The time at which the agent must call `handle` with TimePassed, unless another stimulus comes earlier."""
        return self.facts.deadline_at_us

    def linger_us(self, now_us: int) -> int:
        """Return how many microseconds results may stay unread in channels, so that the agent reads many at once."""
        facts = self.facts
        if facts.drain_started_at_us is not None:
            return 0
        return min(linger_us(facts.executors.values(), facts.durations_of), facts.deadline_at_us - now_us)

    def handle(self, stimulus: on.Stimulus, now_us: int) -> list[do.Instruction]:
        """Change the facts by a stimulus; return the instructions that follow, in the order of their execution."""
        facts = self.facts
        facts.out = []
        self._handlers[type(stimulus)](stimulus, now_us)
        if isinstance(stimulus, on.Results):
            decide_after_results(facts, facts.executors[stimulus.executor_id], stimulus.results, now_us)
        else:
            decide(facts, now_us)
        return facts.out

    # Stimuli from executors.

    def _ready(self, stimulus: on.ExecutorReady, _now_us: int) -> None:
        self.facts.executors[stimulus.executor_id].ready = True

    def _results(self, stimulus: on.Results, now_us: int) -> None:
        executor = self.facts.executors[stimulus.executor_id]
        results = stimulus.results
        # Task code can write to the executor's channel. Without this check, it could send results of tasks that its
        # executor was never given, and so replace the values of other tasks.
        if not executor.expects(results):
            self._garbage(on.GarbageReceived(stimulus.executor_id, "results of tasks that it was not given"), now_us)
            return
        self.facts.failed_starts = 0
        results = executor.audit(results, stimulus.absent_at_us, now_us)
        while results:
            run = executor.runs[0]
            tasks = min(run.end - run.next, len(results))
            executor.advance(tasks)
            self._finish(run, results[:tasks], now_us)
            results = results[tasks:]
        if executor.running is None:
            self.facts.publish_now = True  # if no executor is idle when `publish` runs, `publish` sets this to False

    def _task_waits(self, stimulus: on.TaskWaits, now_us: int) -> None:
        facts = self.facts
        executor = facts.executors[stimulus.executor_id]
        if executor.running is not None and executor.stop is None:
            executor.awaits = stimulus.waits
            if stimulus.waits:
                # While this task waits, another task runs in its place, and has less memory because of the memory that
                # this task holds. So the agent measures that memory at once. The condition bounds how often this
                # happens. Without it, task code that waits again and again could make the agent measure all the time.
                if now_us - executor.awaits_at_us >= MEASURE_US:
                    facts.measure_at_us = now_us
                executor.awaits_at_us, facts.nested = now_us, True

    def _finish(self, run: FedRun, results: list[ExecutorResult], now_us: int) -> None:
        if run.recalled:
            # The executor skipped these tasks because they were recalled. They are back in their lease already.
            return
        # A task that the master does not want any more is not given back, so no give-back would report its time. Such a
        # task gets the outcome "cancelled" instead.
        wants = run.record.wants
        results = [_cancelled(each) if each.outcome == UNFIT and not wants(each.index) else each for each in results]
        for result in results:
            if result.outcome == UNFIT:
                run.record.failed_for_lack(result)
                self.facts.set_package_aside(run.record.lease, result.message or "")
        results = [result for result in results if result.outcome != UNFIT]
        done = [result for result in results if result.outcome != SKIPPED]
        if done:
            self.facts.finish(run.record, done, now_us)
        if len(done) < len(results):
            run.record.put_back((results[len(done)].index, results[-1].index + 1))

    def _recall_checked(self, stimulus: on.RecallChecked, _now_us: int) -> None:
        executor = self.facts.executors.get(stimulus.executor_id)
        if executor is None or executor.recalled_at_us is None:
            return
        executor.recalled_at_us = None
        # If the executor has started another task since the recall, all its tasks stay with it. It runs or skips each
        # of them, and `_finish` puts the skipped ones back.
        if executor.runs and executor.stop is None and executor.skips_all(stimulus.started):
            # The executor is still in the same task, so it will see the recall before it starts the next one.
            for run in executor.take_back():
                run.record.put_back((run.next, run.end))

    def _garbage(self, stimulus: on.GarbageReceived, _now_us: int) -> None:
        executor = self.facts.executors[stimulus.executor_id]
        lease_id, index = executor.position()
        self.facts.kill(executor, outcomes.garbage(stimulus.what, lease_id, index))

    def _gone(self, stimulus: on.ExecutorGone, now_us: int) -> None:
        facts = self.facts
        executor = facts.executors.pop(stimulus.executor_id)
        unpaid_us = executor.unpaid_us(now_us)
        if executor.runs:
            # The executor's channel has been read to the end. If its first run is recalled, the executor ended before
            # it had skipped that run, so no task is to blame.
            if not executor.runs[0].recalled:
                unpaid_us -= self._blame(executor, executor.runs[0], stimulus, now_us)
        elif executor.stop is None and not executor.proven:
            # The executor ended without tasks and before its first result, so the machine probably lacks something,
            # such as memory. Without a growing delay the agent would fork executors as fast as it can.
            facts.failed_starts = min(facts.failed_starts + 1, 6)
            facts.spawn_at_us = now_us + 100_000 * 2**facts.failed_starts
        if executor.account is not None:
            facts.budgets.owe(executor.account, unpaid_us)
        for run in executor.runs:
            if not run.recalled:
                run.record.put_back((run.next, run.end))
        facts.publish_now = True

    def _python_failed(self, stimulus: on.PythonFailed, _now_us: int) -> None:
        facts = self.facts
        facts.pythons = [python for python in facts.pythons if python != stimulus.python]
        facts.python = facts.pythons[0]
        for record in facts.leases.values():
            if record.lease.python == stimulus.python and record.lease.codec == "pickle":
                facts.lacks_python(record)

    def _blame(self, executor: ExecutorRecord, run: FedRun, gone: on.ExecutorGone, now_us: int) -> int:
        """Give the running task a result, if the task caused the end of its executor.

        Return the time that the task used, in microseconds; 0 if it gets no result.
        """
        position, stop = executor.position(), executor.stop
        if stop is None:
            kills = self.facts.killed.get(position, 0) + 1
            # A SIGKILL often comes from the kernel's out-of-memory killer, which may hit an innocent task, so the task
            # runs again. Without the limit, a task that itself needs too much memory would run again without end.
            if gone.exit_code in {None, -signal.SIGKILL} and kills < outcomes.KILLS:
                self.facts.killed[position] = kills
                return 0
            stop = outcomes.crash(gone.exit_code, *position)
        if stop.outcome is None or (stop.lease_id, stop.index) != position:
            # No running task is to blame: either the executor was stopped for another reason, or the task that should
            # be stopped had just ended. In the second case the next task had started. It is innocent and runs again.
            return 0
        used_us = max(now_us - executor.started_at_us, 1)
        result = TaskResult(
            run.next, stop.outcome, used_us, message=stop.message, stdout=gone.stdout, stderr=gone.stderr
        )
        executor.advance(1)
        self.facts.finish(run.record, [result], now_us)
        return used_us

    def _measured(self, stimulus: on.Measured, now_us: int) -> None:
        facts = self.facts
        executor = facts.executors.get(stimulus.executor_id)
        if executor is None or executor.stop is not None:
            return
        rss, limit = stimulus.rss_bytes, nesting.memory_limit(facts, executor)
        executor.memory_bytes = rss
        large = rss > limit * OVERSIZED_PART
        if executor.running is None:
            unpaid_us = self._unpaid_us(executor, stimulus, now_us)
            if executor.account is not None:
                facts.budgets.owe(executor.account, unpaid_us)
            if unpaid_us or rss > limit or (executor.needs_measuring and large):
                facts.kill(executor, Stop())
            executor.needs_measuring = False
            if executor.idle_cpu is None and not executor.runs:
                executor.idle_cpu = now_us, stimulus.cpu_us
            return
        executor.needs_measuring, executor.idle_cpu = large or (facts.shared and stimulus.processes > 0), None
        nesting.measured(executor, stimulus, now_us)
        if rss > limit:
            facts.kill(executor, outcomes.memory(rss, limit, *executor.position()))
        elif stimulus.output_bytes > OUTPUT_LIMIT_BYTES:
            facts.kill(executor, outcomes.spam(stimulus.output_bytes, OUTPUT_LIMIT_BYTES, *executor.position()))
        elif facts.shared and stimulus.descriptors > DESCRIPTORS:
            facts.kill(executor, outcomes.descriptors(stimulus.descriptors, DESCRIPTORS, *executor.position()))

    def _unpaid_us(self, executor: ExecutorRecord, measured: on.Measured, now_us: int) -> int:
        """Return the time for which an idle executor was used by something that a task has left in it, in microseconds.

        It is the time since the executor was first measured in this idle time or, at that measurement, since its last
        result. This time counts if the executor has used the processor since that measurement, or if processes that it
        started run. Otherwise, and on a worker that is not shared, the result is 0. No result of a task reports this
        time.
        """
        if not self.facts.shared or executor.account is None or executor.runs:
            return 0  # while an executor skips recalled tasks, `ExecutorRecord.unpaid_us` counts its time
        since_us, cpu_us = executor.idle_cpu or (executor.started_at_us, measured.cpu_us)
        computes = measured.cpu_us - cpu_us > max(IDLE_CPU_US, (now_us - since_us) // 100)
        return max(now_us - since_us, 1) if computes or measured.processes else 0

    # Stimuli from the master.

    def _retrieved(self, stimulus: on.Retrieved, now_us: int) -> None:
        facts = self.facts
        facts.holds = facts.holds or stimulus.holds
        # This answer, which may contain the chunk that a peek found, says whether more chunks wait. If none of the
        # answer's chunks goes before the other work here, the worker does not fetch again at once.
        overtaking = any(overtakes(facts, lease) for lease in stimulus.leases)
        facts.others_wait = stimulus.waiting and overtaking
        if stimulus.besides:
            facts.fetching = False
            if not overtaking:
                facts.peek_at_us = now_us + PEEK_AGAIN_US
        else:
            facts.retrieving = False
            facts.retrieve_at_us = now_us + stimulus.retry_after_us
        if not any(map(is_suspect, stimulus.leases)):
            self.facts.pause_us, self.facts.resume_at_us = PAUSE_US, now_us
        for lease in stimulus.leases:
            # A repeated request gets the same leases again. If the agent replaced a lease's record, it would run the
            # tasks a second time.
            if lease.lease_id not in self.facts.leases:
                self._take_over(lease, stimulus.request_us // len(stimulus.leases), now_us)
                if lease.lease_id in stimulus.broken:
                    self.facts.leases[lease.lease_id].refuse("seal", stimulus.broken[lease.lease_id])

    def _peeked(self, stimulus: on.Peeked, now_us: int) -> None:
        self.facts.peeking, self.facts.others_wait = False, stimulus.waiting
        self.facts.peek_at_us = now_us + stimulus.retry_after_us

    def _take_over(self, lease: Lease, request_us: int, now_us: int) -> None:
        facts = self.facts
        record = facts.leases[lease.lease_id] = LeaseRecord(lease, now_us, request_us)
        facts.beat_at_us = min(facts.beat_at_us, now_us + beat_us([record]))
        facts.budgets.update(lease, lease.budget_us)
        durations = facts.durations_of(lease)
        durations.suggest(lease.mean_us)
        facts.chunk_us = durations.mean_us * record.untouched
        if not lease.elsewhere:
            # The master says that no other worker can run the package. So the package's tasks run here, and a task that
            # fails keeps its original error.
            facts.set_aside.pop(lease.package_id, None)
        elif lease.package_id in facts.set_aside:
            # The master sent this lease before it knew that this worker has set the package aside.
            record.unfit = facts.set_aside[lease.package_id].unfit
        if lease.network == "none" and not self._offline:
            # Without this check, the tasks would use a network that their account's operator has forbidden. Even if the
            # master knows no other worker that can run them, they must not run here.
            record.unfit = Unfit(facts.host, NETWORKED)
        if lease.python not in facts.pythons and lease.codec == "pickle":
            facts.lacks_python(record)

    def _downloaded(self, stimulus: on.Downloaded, _now_us: int) -> None:
        record = self.facts.leases.get(stimulus.lease_id)
        # Without Forget, the payload store would keep the data of a lease that has ended.
        if record is None:
            self.facts.out.append(do.Forget(stimulus.lease_id))  # the lease ended during the download
        else:
            record.downloading = False
            record.retrieve_us += stimulus.download_us
            record.arrived(stimulus.tasks, stimulus.item_bytes)

    def _download_failed(self, stimulus: on.DownloadFailed, _now_us: int) -> None:
        record = self.facts.leases.get(stimulus.lease_id)
        if record is not None:
            record.downloading = False
            lacks = f"its payload cannot be downloaded: {stimulus.why or 'the log of the worker says why'}"
            if stimulus.broken is not None:
                record.refuse("seal", stimulus.broken)
            elif stimulus.stale:
                record.undeliverable = True
            elif record.lease.elsewhere:
                # If the worker let the lease expire instead, the chunk would count as one that kills its workers. Each
                # further worker would then give back its other tasks to run this chunk alone.
                self.facts.set_package_aside(record.lease, lacks)
            else:
                record.refuse("payload", lacks)

    def _too_large(self, stimulus: on.TooLarge, now_us: int) -> None:
        record = self.facts.leases.get(stimulus.lease_id)
        if record is not None:
            record.downloading = False
            message = outcomes.too_large(stimulus.payload_bytes, self.facts.memory_bytes)
            tasks = ranges.intersect(record.unfetched, [stimulus.tasks])
            indexes = [index for start, end in tasks for index in range(start, end)]
            results = [TaskResult(index, "memory", 1, message=message) for index in indexes]
            self.facts.budgets.used(record.lease.package_id, len(results))
            record.ended_unfetched(results, now_us)

    def _published(self, stimulus: on.Published, now_us: int) -> None:
        facts = self.facts
        facts.publish_ended(facts.leases[stimulus.lease_ids[0]].uploads_for)
        for lease_id in stimulus.lease_ids:
            record = facts.leases[lease_id]
            package_id = record.lease.package_id
            cost_us = stimulus.request_us // len(stimulus.lease_ids)
            facts.unreported_us[package_id] = facts.unreported_us.get(package_id, 0) + cost_us
            # This comes before `_views`, because the budgets in the master's answer usually take these results into
            # account. On AWS the budgets may not take them into account yet: if a package has many workers, results may
            # wait for the package's next fold. The package may then compute a little more than its budget, but its
            # account is never charged more than its quota.
            facts.budgets.counted(package_id, record.published())
        facts.others_wait = facts.others_wait or stimulus.waiting
        self._views(stimulus.views, now_us, hungry=stimulus.hungry)
        for lease_id in stimulus.lease_ids:
            record = facts.leases[lease_id]
            if record.closing:
                facts.forget(record)
        renewed(facts, {view.lease_id for view in stimulus.views}, now_us)

    def _extended(self, stimulus: on.Extended, now_us: int) -> None:
        self.facts.beating = False
        self.facts.others_wait = self.facts.others_wait or stimulus.waiting
        self._views(stimulus.views, now_us, hungry=stimulus.hungry)

    def _views(self, views: list[LeaseView], now_us: int, *, hungry: bool) -> None:
        self.facts.hungry = hungry
        for view in views:
            record = self.facts.leases.get(view.lease_id)
            if record is None:
                continue
            if view.state == "ended":
                self._package_ended(record.lease.package_id, view, now_us)
                continue
            if view.state == "wanted":
                self.facts.budgets.update(record.lease, view.budget_us)
            self._apply(record, view, now_us)

    def _package_ended(self, package_id: str, view: LeaseView, now_us: int) -> None:
        """Apply the end of a package to all its leases here, because the master's answer may name only one of them."""
        for record in self.facts.leases.values():
            if record.lease.package_id == package_id:
                self._apply(record, view, now_us)

    def _apply(self, record: LeaseRecord, view: LeaseView, now_us: int) -> None:
        """Drop those tasks of a lease that the master does not want any more.

        If such a task has run in executors that were killed, publish it as cancelled, with the time that it used.
        Otherwise a user could compute for free and then cancel, because the account may have no later result that
        reports the time.
        """
        facts, ready, lease_id = self.facts, record.ready, record.lease.lease_id
        record.apply(view)
        for task in [task for task in facts.killed if task[0] == lease_id]:
            if ranges.contains(ready, task[1]) and not record.wants(task[1]):
                record.fed += 1  # because `finish` counts each result as that of a fed task
                facts.finish(record, [TaskResult(task[1], "cancelled", 1, message=outcomes.CANCELLED)], now_us)

    def _given_back(self, stimulus: on.GivenBack, _now_us: int) -> None:
        for lease_id in stimulus.lease_ids:
            record = self.facts.leases[lease_id]
            record.returning = False
            if record.closing:
                self.facts.forget(record)

    def _drain(self, _stimulus: on.DrainRequested, now_us: int) -> None:
        if self.facts.drain_started_at_us is None:
            self.facts.drain_started_at_us = self.facts.last_busy_at_us = now_us


def _cancelled(result: ExecutorResult) -> ExecutorResult:
    """Return the result of a task that this worker could not run and that the master no longer wants."""
    return ExecutorResult(result.index, "cancelled", result.duration_us, message=outcomes.CANCELLED)
