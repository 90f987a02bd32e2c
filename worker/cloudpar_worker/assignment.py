"""Which executor gets which tasks."""

from typing import Final

from . import instructions as do
from .executor_record import ExecutorRecord, Stop
from .facts import Facts
from .feeding import ONE_AHEAD_US, run_tasks
from .lease_record import LeaseRecord
from .nesting import may_begin
from .prefetching import remaining_us
from .supervision import spawn
from .suspects import runnable

AFFINITY_US: Final = 300_000
"""So long tasks that an executor cannot serve wait while it has others."""


def feed(facts: Facts, now_us: int, executors: list[ExecutorRecord]) -> None:
    """Give these executors runs of ready tasks, the least loaded first."""
    ready = runnable(facts)
    usable = [executor for executor in executors if executor.usable and not executor.suspect]
    for executor in sorted(usable, key=ExecutorRecord.queued) if ready else ():
        while ready:
            record = _choose(facts, executor, ready, now_us)
            if record is None:
                break
            if not executor.serves(record.lease):
                facts.kill(executor, Stop())  # it never serves two accounts, or two Pythons: a fresh one is on its way
                if record.lease.codec == "pickle":
                    facts.python = record.lease.python
                spawn(facts, now_us)
                break
            durations = facts.durations_of(record.lease)
            share = -(-record.ready_tasks // facts.wanted_executors)
            tasks = 0
            if not executor.worn and _soon_free(facts, executor, now_us):
                tasks = run_tasks(executor, durations, record.item_bytes, share)
            if not tasks:
                break
            taken = record.take(tasks)
            executor.feed(record, *taken, now_us)
            facts.out.append(do.Feed(executor.executor_id, record.lease, taken))
            if not record.ready:
                ready.remove(record)


def _soon_free(facts: Facts, executor: ExecutorRecord, now_us: int) -> bool:
    """Nothing is fed behind a long task: it would wait there while it could run elsewhere."""
    run = executor.running
    if run is None:
        return True
    mean_us = facts.durations_of(run.record.lease).mean_us
    return bool(mean_us) and remaining_us(mean_us, now_us - executor.since_us, 0) < ONE_AHEAD_US


def _choose(facts: Facts, executor: ExecutorRecord, ready: list[LeaseRecord], now_us: int) -> LeaseRecord | None:
    """The lease to serve next: first come, first served, with some patience before one that needs another executor."""
    payable = [record for record in ready if is_payable(facts, record) and may_begin(facts, executor, record.lease)]
    for record in payable:
        if executor.serves(record.lease):
            return record
        if _is_short_of_executors(facts, record):
            own = next((other for other in payable if executor.serves(other.lease)), None)
            if own is not None and now_us - record.arrived_us < AFFINITY_US:
                return own
            return None if executor.running else record
    return None


def _is_short_of_executors(facts: Facts, record: LeaseRecord) -> bool:
    """Whether fewer that can serve a lease are free, or on their way, than it has tasks."""
    free = [executor for executor in facts.executors.values() if executor.stop is None and executor.running is None]
    return sum([executor.serves(record.lease) for executor in free]) < record.ready_tasks


def is_payable(facts: Facts, record: LeaseRecord) -> bool:
    """With nothing left, the master first counts what it has not seen yet; then it knows better than this worker."""
    package_id = record.lease.package_id
    return facts.budgets.left_us(package_id) > 0 or not facts.budgets.unsettled(package_id)
