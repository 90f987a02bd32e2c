"""Chooses the lease that an executor serves next."""

from functools import partial
from typing import Final

from cloudpar_protocol.worker_messages import Lease

from .backlog import full_accounts
from .executor_record import ExecutorRecord
from .facts import Facts
from .feeding import ONE_AHEAD_US
from .lease_record import LeaseRecord
from .nesting import free_places, may_start

AFFINITY_US: Final = 50_000
"""How long an executor continues with short tasks, in microseconds, while a lease that it cannot serve waits. The time
starts when that lease arrives. To start a fresh executor for that lease takes about as long.
"""

SWITCH_US: Final = 1_000_000
"""An executor may be unable to serve the package that is next in turn, but able to serve a later package. The agent
replaces such an executor only if the next package is at least this far behind the later one (Turns.behind_us), in
microseconds of execution time. The bound applies only if the account of the next package already runs a task here. The
bound does not apply to a first task that goes before all others.
"""


def choose(facts: Facts, executor: ExecutorRecord, ready: list[LeaseRecord], now_us: int) -> LeaseRecord | None:
    """Return the lease from which an executor gets tasks next; None if the executor gets no tasks now.

    The result is usually the first lease in turn. If the executor cannot serve this lease, the caller replaces the
    executor by a fresh one. To avoid a replacement, the function may choose a later lease that the executor can serve.
    """
    full = full_accounts(facts)
    ready = [record for record in ready if record.lease.account not in full] if full else ready
    payable = [record for record in ready if is_payable(facts, record) and may_start(facts, executor, record.lease)]
    if not payable:
        return None
    ordered = in_turn(facts, payable, now_us)
    for record in ordered:
        if executor.serves(record.lease):
            return record
        serving, places = _free_for(facts, record), free_places(facts, beside=executor)
        if min(serving, places) < record.ready_tasks:
            own = next((other for other in ordered if executor.serves(other.lease)), None)
            if own is not None and _keeps(facts, own, record, now_us):
                return own
            # There may be more free executors than free places (see `nesting`): some of these executors may not start a
            # task. If more of the free executors can serve this lease than there are places, this executor stays idle.
            # If it took a place for another lease, this lease, although first in turn, would wait for all other work.
            return None if executor.running or serving > places else record
    return None


def in_turn(facts: Facts, records: list[LeaseRecord], now_us: int) -> list[LeaseRecord]:
    """Sort leases by the order in which their tasks run."""

    def mean_us(record: LeaseRecord) -> float:
        return facts.durations_of(record.lease).mean_us

    return facts.turns.order(records, partial(running_us, facts, now_us), mean_us, now_us)


def running_us(facts: Facts, now_us: int) -> list[tuple[Lease, int]]:
    """Return, for each task that runs and is not being stopped, its lease and the time since it started."""
    return [
        (executor.running.record.lease, now_us - executor.started_at_us)
        for executor in facts.executors.values()
        if executor.running and executor.stop is None
    ]


def is_short(facts: Facts, record: LeaseRecord) -> bool:
    """Whether the tasks of a lease are known to be short, so that an executor may get several of them at a time."""
    return 0 < facts.durations_of(record.lease).mean_us < ONE_AHEAD_US


def _keeps(facts: Facts, own: LeaseRecord, other: LeaseRecord, now_us: int) -> bool:
    """Whether an executor continues with the lease `own` although `other`, which it cannot serve, comes earlier."""
    waiting_us = now_us - other.arrived_at_us
    if is_short(facts, own) and waiting_us < AFFINITY_US:
        return True
    if facts.turns.goes_first(other):
        return False
    served = any(each.running and each.account == other.lease.account for each in facts.executors.values())
    return served and facts.turns.behind_us(other.lease, own.lease) < SWITCH_US


def _free_for(facts: Facts, record: LeaseRecord) -> int:
    """Return the number of free or starting executors that can serve a lease."""
    free = [executor for executor in facts.executors.values() if executor.stop is None and executor.running is None]
    return sum([executor.serves(record.lease) for executor in free])


def is_payable(facts: Facts, record: LeaseRecord) -> bool:
    """Whether tasks of a lease may start.

    They may start if their package has budget left, as far as this worker knows. Otherwise the worker first publishes
    the package's results, because the master's answer contains a new budget. If the new budget is used up too, a task
    may start. The worker stops this task at once, and its result says that the quota is used up.
    """
    package_id = record.lease.package_id
    return facts.budgets.left_us(package_id) > 0 or not facts.budgets.has_uncounted(package_id)
