"""What goes to the master and comes from it: results, rests, beats, chunks, payloads."""

from typing import Final

from cloudpar_protocol.limits import BULK_ITEMS, HOLD_S, PUBLICATION_TASKS
from cloudpar_protocol.worker_messages import Return

from . import instructions as do
from . import publishing
from .choosing import is_payable
from .facts import NEVER, Facts
from .lease_record import LeaseRecord
from .nesting import has_room
from .prefetching import HORIZON_US, chunks_needed, remaining_us
from .supervision import running_of
from .suspects import suspects, takes_on

PUBLISH_BYTES: Final = 4 * 1024 * 1024
"""So many bytes of results of one lease are published at once; of all leases together, where requests cost no money:
they then travel while further tasks run, and not all behind the last one."""
PUBLISH_JOBS: Final = 2
AHEAD_HOLD_S: Final = 0.3
"""How long a worker without a free executor has a request for chunks held. What came later than that would wait here
for a task that takes longer than it seemed, while an executor elsewhere may be free."""
HUNGRY_US: Final = 500_000
BEATS: Final = 3
"""In the time of a lease."""


def _free_in_us(facts: Facts, now_us: int) -> list[float]:
    """For each executor that may run at a time, when it will be out of work."""
    free = []
    for executor in facts.executors.values():
        run = executor.running
        if executor.stop is not None or executor.awaits:
            continue
        if run is None:
            free.append(0.0)
        else:
            mean_us = facts.durations_of(run.record.lease).mean_us
            if facts.holds and not mean_us:
                free.append(float(HORIZON_US))  # nobody knows; it asks when it is free
                continue
            free.append(remaining_us(mean_us, now_us - executor.started_at_us, executor.queued()))
    return sorted(free, reverse=True)[: facts.wanted_executors]


def _task_us(facts: Facts, record: LeaseRecord, now_us: int) -> float:
    """How long a task of a lease takes: the mean, or as long as one has been running while there is none."""
    mean_us = facts.durations_of(record.lease).mean_us
    if mean_us:
        return mean_us
    running = running_of(facts, record.lease.package_id)
    return max([float(now_us - executor.started_at_us) for executor in running], default=0.0)


def share(facts: Facts, now_us: int) -> None:
    """Others idle: give back half of each rest that this worker will not begin soon."""
    if not facts.hungry:
        return
    free_us = min(_free_in_us(facts, now_us), default=0.0)
    returns = []
    for record in facts.leases.values():
        untouched = record.untouched
        if not untouched or record.returning:
            continue
        rest_us = untouched * _task_us(facts, record, now_us) / facts.wanted_executors
        if free_us + rest_us > HUNGRY_US:
            returns.append(record.give_back((untouched + 1) // 2))
    if returns:
        facts.hungry = False
        _give_back(facts, returns)


def return_all(facts: Facts) -> None:
    """A worker that drains keeps only what runs."""
    returns = [
        record.give_back(record.untouched)
        for record in facts.leases.values()
        if record.untouched and not record.returning
    ]
    _give_back(facts, returns)


def return_unfit(facts: Facts) -> None:
    """What this worker cannot run goes to others."""
    returns = [
        record.give_back(record.untouched)
        for record in facts.leases.values()
        if record.unfit is not None and record.untouched and not record.returning
    ]
    _give_back(facts, returns)


def isolate(facts: Facts, now_us: int) -> None:
    """Of chunks that may take this worker along, keep one, and that alone; none beside what has begun."""
    found = suspects(facts)
    if not found:
        return
    others = [record for record in facts.leases.values() if record not in found]
    company = any(record.started for record in others)
    left = found if company else found[1:] + others
    going = [record for record in left if record.untouched and not record.returning]
    _give_back(facts, [record.give_back(record.untouched) for record in going])
    if company and going:
        facts.resume_at_us = now_us + facts.pause_us
        facts.pause_us *= 2


def _give_back(facts: Facts, returns: list[Return]) -> None:
    for first in range(0, len(returns), BULK_ITEMS):
        facts.out.append(do.GiveBackTasks(returns[first : first + BULK_ITEMS]))


def download(facts: Facts) -> None:
    """Get payloads a little ahead of the executors."""
    for record in facts.leases.values():
        startable = record.unfit is None and has_room(facts, record.lease)
        if not record.unfetched or record.downloading or not startable:
            continue
        if record.undeliverable:
            if not record.returning:
                _give_back(facts, [record.give_back(record.untouched)])
            continue
        mean_us = facts.durations_of(record.lease).mean_us
        few = record.ready_tasks < 2 * facts.wanted_executors
        if few or record.ready_tasks * mean_us < HORIZON_US * facts.wanted_executors:
            record.downloading = True
            facts.out.append(do.Download(record.lease, record.unfetched[0]))


def retrieve(facts: Facts, now_us: int) -> None:
    """Ask for chunks before the executors run dry."""
    if facts.retrieving or now_us < facts.retrieve_at_us or not takes_on(facts, now_us):
        return
    waiting_us = 0.0
    for record in facts.leases.values():
        untouched = record.untouched
        if untouched and record.unfit is None and has_room(facts, record.lease):
            mean_us = facts.durations_of(record.lease).mean_us
            # Nobody knows how long these take: a chunk is enough for an executor.
            waiting_us += untouched * mean_us if mean_us else HORIZON_US
    chunks = chunks_needed(_free_in_us(facts, now_us), waiting_us, facts.chunk_us, facts.wanted_executors)
    if chunks:
        facts.retrieving = True
        idle = any(executor.usable and executor.running is None for executor in facts.executors.values())
        facts.retrieve(min(chunks, BULK_ITEMS), HOLD_S if idle or not facts.holds else AHEAD_HOLD_S)


def publish(facts: Facts, now_us: int) -> None:
    """Send results in bulk: soon if somebody may wait for them, else now and then."""
    short_of_budget = any(not is_payable(facts, record) for record in facts.leases.values() if record.ready)
    idle = any(executor.usable and executor.running is None for executor in facts.executors.values())
    if not idle and facts.drain_started_at_us is None:
        facts.publish_now = False
    facts.publish_now = facts.publish_now or short_of_budget
    if facts.publish_jobs >= PUBLISH_JOBS:
        return
    free = [record for record in facts.leases.values() if not record.publishing and not record.closing]
    due = (
        facts.publish_now
        or any(_due(facts, record, now_us) for record in free)
        or _any_last_here(facts, free)
        or (facts.holds and sum([record.pending_bytes for record in free]) >= PUBLISH_BYTES)
    )
    made = []
    for record in free:
        done = record.exhausted and not record.returning
        if record.abandoned and done and not record.pending:
            facts.forget(record)
        elif (due and record.pending) or (done and not record.pending):
            record.report_cost(facts.unreported_us)
            facts.durations_of(record.lease).publications += 1
            made += publishing.publications(record)
    # What could not go, since the lease has a publication under way, goes right after that.
    facts.publish_now = facts.publish_now and any(record.pending for record in facts.leases.values())
    facts.send(made)


def _any_last_here(facts: Facts, free: list[LeaseRecord]) -> bool:
    """Whether a package is done at this worker: its client may wait for just these results, others go on regardless."""
    done = [record for record in free if record.exhausted and record.pending and not record.returning]
    if not done:
        return False
    unfinished = {record.lease.package_id for record in facts.leases.values() if not record.exhausted}
    return any(record.lease.package_id not in unfinished for record in done)


def publication_at_us(facts: Facts, record: LeaseRecord) -> int:
    """When what a lease has pending is to go, if nothing else happens."""
    lease = record.lease
    return record.pending_at_us + facts.durations_of(lease).collect_us(lease.publish_us)


def _due(facts: Facts, record: LeaseRecord, now_us: int) -> bool:
    if not record.pending:
        return False
    full = len(record.pending) >= PUBLICATION_TASKS or record.pending_bytes >= PUBLISH_BYTES
    return full or now_us >= publication_at_us(facts, record)


def extend(facts: Facts, now_us: int) -> None:
    """Keep the leases."""
    if now_us < facts.beat_at_us or facts.beating:
        return
    alive = [record for record in facts.leases.values() if not record.closing and not record.abandoned]
    if not alive:
        facts.beat_at_us = NEVER
        return
    facts.beat_at_us = now_us + int(min(record.lease.lease_s for record in alive) / BEATS * 1e6)
    facts.beating = True
    facts.out.append(do.Extend([record.reference() for record in alive]))
