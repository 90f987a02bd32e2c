"""Tasks that wait for tasks of their own: their executors count as idle, and others run in their place.

At most as many executors as the worker was started with run at a time. In addition, at most so many wait of each depth
(cloudpar_protocol.nesting). That is enough to let every task end: the tasks that a deepest waiting task waits for are
one deeper, none of these waits, so they are running somewhere or may run here. It also bounds the processes: many tasks
that each start others do not all begin, to wait together, before the first of the others runs.
"""

from typing import Final

from cloudpar_protocol.worker_messages import Lease

from . import outcomes
from .executor_record import ExecutorRecord, Stop
from .facts import Facts
from .lease_record import LeaseRecord

HELD_PART: Final = 0.75
"""How much of the executors' memory together tasks may hold that wait. What runs has the rest."""
SURPLUS_US: Final = 10_000_000
"""How long more executors than run at a time stay, after the last task has waited: they have functions in memory."""
LEASES: Final = 1_000
"""A worker asks for more while nothing that it has may run beside what waits. With so many leases it runs what it has,
since what the tasks wait for may be in the queue behind more of the same."""


def may_start(facts: Facts, executor: ExecutorRecord, lease: Lease) -> bool:
    """Whether an executor may be fed tasks of a lease, or has to stay idle because enough others run."""
    if executor.awaits:
        return False
    if not facts.nested:
        return True
    others = [each for each in facts.executors.values() if each.running and not each.stop and each is not executor]
    running = len([each for each in others if not each.awaits])
    # What runs counts, too: it may be about to wait.
    alike = len([each for each in others if each.depth == lease.depth])
    most = facts.wanted_executors
    return (alike < most or _is_crowded(facts)) and (executor.running is not None or running < most)


def has_room(facts: Facts, lease: Lease) -> bool:
    """Whether tasks of this depth may begin at all."""
    if not facts.nested or _is_crowded(facts):
        return True
    waiting = [each for each in facts.executors.values() if each.awaits and each.depth == lease.depth]
    return len(waiting) < facts.wanted_executors


def awaits(facts: Facts, record: LeaseRecord) -> bool:
    """Whether the tasks of a lease that have begun here all wait."""
    running = [each for each in facts.executors.values() if each.running and each.running.record is record]
    return bool(running) and all(each.awaits for each in running)


def stop_surplus(facts: Facts, now_us: int) -> None:
    """Stop idle executors that are more than may run at a time, some time after the last task has waited."""
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
    """The memory of one executor: what tasks hold that wait is missing from what runs in their place."""
    if not facts.nested or executor.awaits:
        return facts.memory_bytes
    left = facts.memory_bytes - _held_bytes(facts) // facts.wanted_executors
    return max(left, round(facts.memory_bytes * (1 - HELD_PART)))


def stop_overfull(facts: Facts) -> None:
    """If tasks that wait hold too much memory, stop the one that began to wait last."""
    most = round(facts.memory_bytes * facts.wanted_executors * HELD_PART)
    waiting = [each for each in facts.executors.values() if each.awaits and each.stop is None]
    if len(waiting) > 1 and (held := _held_bytes(facts)) > most:
        newest = max(waiting, key=lambda each: each.awaits_at_us)
        facts.kill(newest, outcomes.nested_memory(len(waiting), held, most, *newest.position()))


def _is_crowded(facts: Facts) -> bool:
    return len(facts.leases) >= LEASES


def _held_bytes(facts: Facts) -> int:
    return sum([each.memory_bytes for each in facts.executors.values() if each.awaits])
