"""While a task waits for tasks that it has started itself, another executor runs in its place.

Let n be the number of executors with which the worker was started. There are two limits. First, at most n executors run
at a time; an executor whose task waits does not count as running. Second, at each nesting depth
(cloudpar_protocol.nesting) at most n tasks have started and not ended, including tasks that wait.

Within these limits every task can end. The deepest tasks that wait here wait for tasks one level deeper. No task of
that deeper level waits here, so the tasks of that level run elsewhere or may start here. The second limit also bounds
the number of processes. Without it, if many tasks each start tasks of their own, all of these many tasks could start
and wait here before the first of their own tasks runs. A worker with very many leases ignores the second limit
(LEASES).

The first limit depends on what tasks say. A task that says that it waits may compute, and tasks that really waited may
all continue at once. So a shared worker has a third limit, which depends on what the worker measures. Of the executors
of an account that compute, at most n keep their share of the processors. The others get the lowest weight (`lightest`).
"""

from collections import Counter
from typing import Final

from cloudpar_protocol.worker_messages import Lease

from . import outcomes
from . import stimuli as on
from .executor_record import ExecutorRecord, Stop
from .facts import Facts
from .lease_record import LeaseRecord

HELD_PART: Final = 0.75
"""Waiting tasks together may hold this part of the memory of all executors. The rest is for running tasks."""
SURPLUS_US: Final = 10_000_000
"""How long the worker keeps surplus executors after a task last waited for its own tasks, in microseconds. It keeps
them because they have functions in memory that further tasks may need.
"""
LEASES: Final = 1_000
"""While tasks wait and none of the chunks here may start, the worker retrieves more chunks. Once the worker has this
many leases, it ignores the limit for each depth. The tasks for which the waiting tasks wait may be in the queue, behind
many more chunks that may not start either.
"""
WAIT_CPU_US: Final = 20_000
"""A task that says that it waits counts as computing if its executor uses more CPU time than this, in microseconds,
from one measurement to the next, and also more than a tenth of the time between them. The kernel shows CPU time in
steps of 10,000 microseconds.
"""

LIGHT_US: Final = 2_000_000
"""With the lowest weight, a task that computes may get hardly any CPU time. So a task with this weight counts as
waiting only after it has used at most WAIT_CPU_US in this time, in microseconds. Otherwise its weight would change at
every second measurement.
"""


def may_start(facts: Facts, executor: ExecutorRecord, lease: Lease) -> bool:
    """Whether an executor may get tasks of a lease now.

    It may not in three cases: its own task waits for other tasks, the maximum number of executors run already, or the
    maximum number of tasks of the lease's depth have started. LEASES describes an exception to the third case.
    """
    if executor.awaits:
        return False
    if not facts.nested:
        return True
    # Count running tasks too, because a running task may start to wait at any time.
    alike = len([each for each in _running_beside(facts, executor) if each.depth == lease.depth])
    if alike >= facts.wanted_executors and not _is_crowded(facts):
        return False
    return executor.running is not None or free_places(facts, beside=executor) >= 0


def free_places(facts: Facts, beside: ExecutorRecord | None = None) -> int:
    """Return the number of further executors that may run tasks.

    An executor whose task waits for its own tasks does not count as running. `beside`, if given, counts as running. The
    result may be negative.
    """
    running = len([each for each in _running_beside(facts, beside) if not each.awaits])
    return facts.wanted_executors - running - (beside is not None)


def has_room(facts: Facts, lease: Lease) -> bool:
    """Whether tasks of this lease's depth may start when an executor is free.

    They may not if as many tasks of this depth wait already as executors may run at a time. LEASES describes an
    exception.
    """
    if not facts.nested or _is_crowded(facts):
        return True
    waiting = [each for each in facts.executors.values() if each.awaits and each.depth == lease.depth]
    return len(waiting) < facts.wanted_executors


def awaits(facts: Facts, record: LeaseRecord) -> bool:
    """Whether at least one task of a lease runs here, and all its running tasks wait for tasks of their own."""
    running = [each for each in facts.executors.values() if each.running and each.running.record is record]
    return bool(running) and all(each.awaits for each in running)


def stop_surplus(facts: Facts, now_us: int) -> None:
    """Stop surplus idle executors if no task has waited for its own tasks in the last SURPLUS_US.

    Surplus executors are those beyond the number that may run at a time.
    """
    if not facts.nested:
        return
    if any(each.awaits for each in facts.executors.values()):
        facts.last_nested_at_us = now_us
    elif now_us - facts.last_nested_at_us >= SURPLUS_US:
        alive = [each for each in facts.executors.values() if each.stop is None]
        idle = [each for each in alive if each.running is None]
        surplus = len(alive) - facts.wanted_executors
        for executor in idle[: max(surplus, 0)]:
            facts.kill(executor, Stop())
        facts.nested = surplus > len(idle)


def memory_limit(facts: Facts, executor: ExecutorRecord) -> int:
    """Return the memory limit of one executor.

    The memory that waiting tasks hold lowers the limit of all other executors, at most by the part HELD_PART of the
    limit.
    """
    if not facts.nested or executor.awaits:
        return facts.memory_bytes
    left = facts.memory_bytes - _held_bytes(facts) // facts.wanted_executors
    return max(left, round(facts.memory_bytes * (1 - HELD_PART)))


def stop_overfull(facts: Facts) -> None:
    """If several tasks wait and together hold too much memory, stop the one that started to wait last."""
    most = round(facts.memory_bytes * facts.wanted_executors * HELD_PART)
    waiting = [each for each in facts.executors.values() if each.awaits and each.stop is None]
    if len(waiting) > 1 and (held := _held_bytes(facts)) > most:
        newest = max(waiting, key=lambda each: each.awaits_at_us)
        facts.kill(newest, outcomes.nested_memory(len(waiting), held, most, *newest.position()))


def measured(executor: ExecutorRecord, stimulus: on.Measured, now_us: int) -> None:
    """Record whether an executor with a running task computes, whatever the task says.

    If the task has started processes, the executor counts as computing.
    """
    at_us, cpu_us = executor.cpu or (now_us, stimulus.cpu_us)
    since_us, used_us = now_us - at_us, stimulus.cpu_us - cpu_us
    least_us = WAIT_CPU_US if executor.light else max(WAIT_CPU_US, since_us // 10)
    computes = used_us > least_us or stimulus.processes > 0
    if computes or not (executor.computes and executor.light) or since_us >= LIGHT_US:
        executor.cpu, executor.computes = (now_us, stimulus.cpu_us), computes


def lightest(facts: Facts) -> list[int]:
    """Return the executors that get the lowest weight.

    On a shared worker, if more than n executors of an account compute, all of them but n get the lowest weight. Without
    this limit, one account could get several times as much processor time as another. The tasks of the other account
    would also be charged for the time for which they wait for a processor.
    """
    running = [each for each in facts.executors.values() if each.running and each.stop is None]
    computing = [each for each in running if each.computes or not each.awaits] if facts.shared else []
    # The executors at the front of the list keep their share. A task that says that it waits may need the result of a
    # task that does not wait, so tasks that say so are at the end. Among the others, executors with which the worker
    # was started come before those that took the place of waiting tasks, so a task that has waited gets its share again
    # as soon as it continues.
    computing.sort(key=lambda each: (each.awaits, each.executor_id))
    seen = Counter[str | None]()
    for executor in facts.executors.values():
        executor.light = False
    for executor in computing:
        seen[executor.account] += 1
        executor.light = seen[executor.account] > facts.wanted_executors
    return [executor.executor_id for executor in computing if executor.light]


def _running_beside(facts: Facts, executor: ExecutorRecord | None) -> list[ExecutorRecord]:
    return [each for each in facts.executors.values() if each.running and not each.stop and each is not executor]


def _is_crowded(facts: Facts) -> bool:
    return len(facts.leases) >= LEASES


def _held_bytes(facts: Facts) -> int:
    return sum([each.memory_bytes for each in facts.executors.values() if each.awaits])
