"""Which lease an executor serves next."""

from typing import Final

from .executor_record import ExecutorRecord
from .facts import Facts
from .feeding import ONE_AHEAD_US
from .lease_record import LeaseRecord
from .nesting import free_places, may_start
from .supervision import running_of

AFFINITY_US: Final = 50_000
"""How long, in microseconds, an executor continues with short tasks that it can serve while other tasks wait that it
cannot serve. Those need a fresh executor, which takes about as long to start.
"""

SWITCH_US: Final = 1_000_000
"""An account that already runs a task here gets another account's executor only for the first task of a package, or if
its package is at least this far behind, in microseconds of execution time.
"""


def choose(facts: Facts, executor: ExecutorRecord, ready: list[LeaseRecord], now_us: int) -> LeaseRecord | None:
    """The lease whose tasks an executor gets next, usually the first in turn; None if it gets no task now.

    The result may be a lease that this executor cannot serve; then a fresh executor has to replace it. Before such a
    lease, one that this executor can serve may come although it is later in turn.
    """
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
            # With surplus executors (see `nesting`), a task of this executor would take the place of a free executor
            # that can serve the lease. Then the lease, although first in turn, would wait for all other work.
            return None if executor.running or serving > places else record
    return None


def in_turn(facts: Facts, records: list[LeaseRecord], now_us: int) -> list[LeaseRecord]:
    """Sort leases (at least one) by whose tasks run next."""

    def running_us(package_id: str) -> int:
        return sum([now_us - executor.started_at_us for executor in running_of(facts, package_id)])

    return facts.turns.order(records, running_us, lambda record: facts.durations_of(record.lease).mean_us, now_us)


def is_short(facts: Facts, record: LeaseRecord) -> bool:
    """Whether an executor gets several tasks of a lease at a time."""
    return 0 < facts.durations_of(record.lease).mean_us < ONE_AHEAD_US


def _keeps(facts: Facts, own: LeaseRecord, other: LeaseRecord, now_us: int) -> bool:
    """Whether an executor continues with `own`, which it can serve, although `other`, which it cannot, is in turn."""
    waiting_us = now_us - other.arrived_at_us
    if is_short(facts, own) and waiting_us < AFFINITY_US:
        return True
    if other.first:
        return False
    served = any(each.running and each.account == other.lease.account for each in facts.executors.values())
    return served and facts.turns.behind_us(other.lease.package_id, own.lease.package_id) < SWITCH_US


def _free_for(facts: Facts, record: LeaseRecord) -> int:
    """How many free or starting executors can serve a lease."""
    free = [executor for executor in facts.executors.values() if executor.stop is None and executor.running is None]
    return sum([executor.serves(record.lease) for executor in free])


def is_payable(facts: Facts, record: LeaseRecord) -> bool:
    """Whether tasks of a lease may start: its package has budget left, or the master's figure of the budget is exact.

    The figure is exact if the master has counted all results of this worker. If no budget seems left, the worker first
    publishes its results. The master then counts them, and sends a new figure.
    """
    package_id = record.lease.package_id
    return facts.budgets.left_us(package_id) > 0 or not facts.budgets.has_uncounted(package_id)
