"""Which executor gets which tasks."""

from typing import Final

from . import instructions as do
from .executor_record import ExecutorRecord, Stop
from .facts import Facts
from .feeding import ONE_AHEAD_US, run_tasks
from .lease_record import LeaseRecord
from .prefetching import remaining_us
from .supervision import spawn

AFFINITY_US: Final = 300_000
"""So long another account's tasks wait while an executor has work of the account it serves."""


def feed(facts: Facts, now_us: int, executors: list[ExecutorRecord]) -> None:
    """Give these executors runs of ready tasks, the least loaded first."""
    ready = [record for record in facts.leases.values() if record.ready]
    usable = [executor for executor in executors if executor.usable and not executor.suspect]
    for executor in sorted(usable, key=ExecutorRecord.queued) if ready else ():
        while ready:
            record = _choose(facts, executor, ready, now_us)
            if record is None:
                break
            if executor.account not in {None, record.lease.account}:
                facts.kill(executor, Stop())  # an executor never serves two accounts; a fresh one is on its way
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
    """The lease to serve next: first come, first served, with some patience before a switch of accounts."""
    payable = [record for record in ready if is_payable(facts, record)]
    if not payable:
        return None
    first = payable[0]
    if executor.account in {None, first.lease.account}:
        return first
    own = next((record for record in payable if record.lease.account == executor.account), None)
    if own is not None and now_us - first.arrived_us < AFFINITY_US:
        return own
    return None if executor.running else first


def is_payable(facts: Facts, record: LeaseRecord) -> bool:
    """With nothing left, the master first counts what it has not seen yet; then it knows better than this worker."""
    package_id = record.lease.package_id
    return facts.budgets.left_us(package_id) > 0 or not facts.budgets.unsettled(package_id)
