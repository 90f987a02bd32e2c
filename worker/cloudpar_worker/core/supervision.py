"""Starts, stops and measures executors, and recalls tasks from them."""

from typing import Final

from . import instructions as do
from . import nesting, outcomes
from .executor_record import ExecutorRecord, Stop
from .facts import NEVER, Facts

MEASURE_US: Final = 200_000
"""The time between two measurements of the executors while one of them runs a task, in microseconds."""
IDLE_MEASURE_US: Final = 1_000_000
"""The time between two measurements of the executors while none of them runs a task, in microseconds."""
STUCK_US: Final = 100_000
"""A task that has run for this long, in microseconds, counts as stuck, and the agent recalls the tasks behind it."""
RECALL_VISIBLE_US: Final = 2_000
"""The time from a recall to the check whether the executor skips the tasks, in microseconds. It is much longer than
another core needs to see a write to shared memory.
"""
DESCRIPTORS: Final = 262_144
"""A shared worker stops a task if the processes that the task started have room for more file descriptors than this.
Some machines allow only a few more than this for all their processes together.
"""
IDLE_CPU_US: Final = 100_000
"""A shared worker replaces an executor that has used more CPU time than this, in microseconds, since the first
measurement of its idle time, and also more than a hundredth of the time since then. The executor's own code uses almost
no CPU time while it is idle.
"""
OVERSIZED_PART: Final = 0.6
"""If an executor holds more than this part of its memory limit while a task runs, it gets no further task meanwhile. If
it still holds more than this part after the task, the worker replaces it.
"""
IDLE_US: Final = 60_000_000
"""A shared worker replaces an executor that has had tasks and has since been idle for this long, in microseconds."""
OUTPUT_LIMIT_BYTES: Final = 64 * 1024 * 1024
"""The worker stops a task that writes more than this many bytes to standard output, or to standard error, because the
output files take memory.
"""


def stop(facts: Facts, now_us: int) -> None:
    """Stop tasks at a limit, tasks that the master no longer wants, and executors that do not skip recalled tasks."""
    nesting.stop_overfull(facts)
    elapsed: dict[str, int] = {}
    for executor in facts.executors.values():
        run = executor.running
        if executor.stop is not None:
            continue
        if executor.disobeys_at_us is not None and now_us >= executor.disobeys_at_us:
            # Without this kill, task code that keeps its executor from skipping recalled tasks could compute without a
            # time limit.
            facts.kill(executor, Stop())
        if run is None:
            continue
        lease, elapsed_us = run.record.lease, now_us - executor.started_at_us
        elapsed[lease.package_id] = elapsed.get(lease.package_id, 0) + elapsed_us
        if not run.record.wants(run.next):
            facts.kill(executor, outcomes.cancelled(*executor.position()))
        elif elapsed_us >= lease.task_timeout_s * 1e6:
            facts.kill(executor, outcomes.timeout(lease.task_timeout_s, *executor.position()))
    for package_id, elapsed_us in elapsed.items():
        if elapsed_us and elapsed_us >= facts.budgets.left_us(package_id):
            for executor in running_of(facts, package_id):
                facts.kill(executor, outcomes.quota(*executor.position()))


def running_of(facts: Facts, package_id: str) -> list[ExecutorRecord]:
    """Return the executors that run a task of a package and are not being stopped."""
    return [
        executor
        for executor in facts.executors.values()
        if executor.running and executor.stop is None and executor.running.record.lease.package_id == package_id
    ]


def spawn(facts: Facts, now_us: int) -> None:
    """Start executors up to the wanted number; stop idle executors that are worn or surplus.

    A shared worker also stops executors that have been idle for IDLE_US, because task code may have left something in
    their processes. While the worker drains, or pauses after failed starts, it starts no executor, and surplus
    executors stay.
    """
    for executor in facts.executors.values():
        if executor.running is None and (executor.worn or _is_stale(facts, executor, now_us)):
            facts.kill(executor, Stop())
    if facts.drain_started_at_us is not None or now_us < facts.spawn_at_us:
        return
    nesting.stop_surplus(facts, now_us)
    alive = sum(1 for executor in facts.executors.values() if executor.stop is None and not executor.awaits)
    for _ in range(alive, facts.wanted_executors):
        executor = ExecutorRecord(facts.next_executor, facts.python)
        facts.executors[executor.executor_id] = executor
        facts.next_executor += 1
        facts.out.append(do.Spawn(executor.executor_id, executor.python))


def _is_stale(facts: Facts, executor: ExecutorRecord, now_us: int) -> bool:
    used = executor.account is not None and not executor.runs
    return facts.shared and used and now_us - executor.started_at_us >= IDLE_US


def recall(facts: Facts, now_us: int) -> None:
    """Recall the tasks behind a task that turned out to be long, so that they can run elsewhere.

    Some time after a recall (RECALL_VISIBLE_US), check whether the executor skips the recalled tasks.
    """
    for executor in facts.executors.values():
        run = executor.running
        if run is None or executor.stop is not None:
            continue
        # The executor reads the recall page before each task, without a lock. By the end of RECALL_VISIBLE_US it has
        # either seen the recall or announced the task that it started. An earlier check could miss both.
        if executor.recalled_at_us is not None:
            if now_us - executor.recalled_at_us >= RECALL_VISIBLE_US:
                facts.out.append(do.CheckRecall(executor.executor_id))
        elif now_us - executor.started_at_us >= STUCK_US and executor.has_queued():
            facts.out.append(do.Recall(executor.executor_id, *executor.recall(now_us)))


def measure(facts: Facts, now_us: int) -> None:
    """Measure executors that have had tasks: often while any of them runs a task, otherwise rarely.

    The agent also measures idle executors, because a process that a task started may grow after the task has ended. An
    executor whose record says `needs_measuring` is measured as soon as it is idle, so that it can get tasks again or be
    replaced.
    """
    used = [executor for executor in facts.executors.values() if executor.account is not None and executor.stop is None]
    every_us = MEASURE_US if any(executor.running for executor in used) else IDLE_MEASURE_US
    waiting = [executor for executor in facts.executors.values() if executor.needs_measuring and executor.usable]
    between = [executor.executor_id for executor in waiting if executor.running is None]
    if between:
        facts.out.append(do.Measure(between, []))
    if not used:
        facts.measure_at_us = NEVER
    elif now_us < facts.measure_at_us:
        facts.measure_at_us = min(facts.measure_at_us, now_us + every_us)
    else:
        facts.measure_at_us = now_us + every_us
        facts.out.append(do.Measure([executor.executor_id for executor in used], nesting.lightest(facts)))
