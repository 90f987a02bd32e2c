"""What executors are told besides tasks: to come, to go, to pass over tasks; and how they are looked after."""

from typing import Final

from . import instructions as do
from . import nesting, outcomes
from .executor_record import ExecutorRecord, Stop
from .facts import NEVER, Facts

MEASURE_US: Final = 200_000
IDLE_MEASURE_US: Final = 1_000_000
STUCK_US: Final = 100_000
"""A task runs so long that what was fed behind it is taken back."""
RECALL_VISIBLE_US: Final = 2_000
"""By far longer than a write to memory takes to be seen by another core."""
OVERSIZED_PART: Final = 0.6
"""An executor that holds more than this part of its memory between tasks is replaced."""
OUTPUT_LIMIT_BYTES: Final = 64 * 1024 * 1024


def stop(facts: Facts, now_us: int) -> None:
    """Tasks at a limit, and tasks that nobody wants any more."""
    nesting.stop_overfull(facts)
    elapsed: dict[str, int] = {}
    for executor in facts.executors.values():
        run = executor.running
        if run is None or executor.stop is not None:
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
    """The executors that are in a task of a package."""
    return [
        executor
        for executor in facts.executors.values()
        if executor.running and executor.stop is None and executor.running.record.lease.package_id == package_id
    ]


def spawn(facts: Facts, now_us: int) -> None:
    """Keep the number of executors, and none for longer than its memory holds out."""
    for executor in facts.executors.values():
        if executor.worn and executor.running is None:
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


def recall(facts: Facts, now_us: int) -> None:
    """What waits behind a task that turned out long can run elsewhere."""
    for executor in facts.executors.values():
        run = executor.running
        if run is None or executor.stop is not None:
            continue
        if executor.recalled_at_us is not None:
            if now_us - executor.recalled_at_us >= RECALL_VISIBLE_US:
                facts.out.append(do.ConfirmRecall(executor.executor_id))
        elif now_us - executor.started_at_us >= STUCK_US and executor.has_queued():
            facts.out.append(do.Recall(executor.executor_id, *executor.recall(now_us)))


def measure(facts: Facts, now_us: int) -> None:
    """Look now and then at executors that had tasks, most often if one has; and between tasks at those that were large.

    What a task started may grow when the task has long ended.
    """
    used = [executor for executor in facts.executors.values() if executor.account is not None and executor.stop is None]
    every_us = MEASURE_US if any(executor.running for executor in used) else IDLE_MEASURE_US
    suspects = [executor for executor in facts.executors.values() if executor.oversized and executor.usable]
    between = [executor.executor_id for executor in suspects if executor.running is None]
    if between:
        facts.out.append(do.Measure(between))
    if not used:
        facts.measure_at_us = NEVER
    elif now_us < facts.measure_at_us:
        facts.measure_at_us = min(facts.measure_at_us, now_us + every_us)
    else:
        facts.measure_at_us = now_us + every_us
        facts.out.append(do.Measure([executor.executor_id for executor in used]))
