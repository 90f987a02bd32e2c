"""Decides when the worker exchanges results, give-backs, beats, chunks and payloads with the master."""

from collections.abc import Container, Iterable
from typing import Final

from cloudpar_protocol.limits import BULK_ITEMS, HOLD_S, PUBLICATION_TASKS
from cloudpar_protocol.worker_messages import LeaseRef, Publication, Return

from . import instructions as do
from . import publishing
from .backlog import full_accounts, may_download, may_publish
from .choosing import is_payable
from .facts import NEVER, Facts
from .lease_record import LeaseRecord
from .nesting import has_room
from .prefetching import HORIZON_US, chunks_needed, remaining_us
from .supervision import running_of
from .suspects import suspects, takes_on

PUBLISH_BYTES: Final = 4 * 1024 * 1024
"""The worker publishes once a lease has this many bytes of pending results, so that large results travel while further
tasks run, and not all after the last task. If the master holds requests, requests cost no money. The worker then
publishes as soon as all leases together have this many bytes.
"""
PARTS: Final = 4
"""Where requests cost money, the worker publishes a lease's results once they fill this many publications, which then
travel in one request. Elsewhere it publishes them as soon as they fill one publication.
"""
LONG_US: Final = 5_000_000
"""A worker may collect results of a lease for some time (`collect_us`). If this time is at least LONG_US, in
microseconds, the worker publishes the last results of the lease after half of this time.
"""
AHEAD_HOLD_S: Final = 0.3
"""How long the master may hold the retrieval of a worker without a free executor, in seconds. After a longer hold, a
chunk could wait here behind a task that takes longer than expected, while an executor elsewhere is free.
"""
HUNGRY_US: Final = 500_000
"""If other workers are idle, this worker looks for leases that it probably cannot finish within this time, in
microseconds. Of the tasks of each such lease that no executor has, it gives back half.
"""
BEATS: Final = 3
"""How many beats a worker sends within the time of one lease, so that a lost beat does no harm."""


def _free_in_us(facts: Facts, now_us: int) -> list[float]:
    """Return, for each executor, the microseconds until it has no more work.

    The list leaves out executors that are being stopped, and executors whose task waits for tasks of its own. If more
    executors remain than may run at a time, the list has only the longest times.
    """
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
                # The duration of the tasks is unknown, so the executor counts as busy. The worker requests more chunks
                # for it only when it is free.
                free.append(float(HORIZON_US))
                continue
            free.append(remaining_us(mean_us, now_us - executor.started_at_us, executor.queued()))
    return sorted(free, reverse=True)[: facts.wanted_executors]


def _task_us(facts: Facts, record: LeaseRecord, now_us: int) -> float:
    """Return the mean duration of a lease's tasks.

    If the mean is unknown, return the time since the start of the package's oldest running task; 0 if none runs.
    """
    mean_us = facts.durations_of(record.lease).mean_us
    if mean_us:
        return mean_us
    running = running_of(facts, record.lease.package_id)
    return max([float(now_us - executor.started_at_us) for executor in running], default=0.0)


def share(facts: Facts, now_us: int) -> None:
    """If other workers are idle, give back some tasks of each lease that has much work (see HUNGRY_US)."""
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


def return_untouched(facts: Facts, records: Iterable[LeaseRecord]) -> bool:
    """Give back all tasks of these leases that no executor has; return whether there were such tasks.

    A lease with a give-back under way is skipped.
    """
    returns = [record.give_back(record.untouched) for record in records if record.untouched and not record.returning]
    _give_back(facts, returns)
    return bool(returns)


def isolate(facts: Facts, now_us: int) -> None:
    """If the worker has suspects, keep one of them to run alone, and give back the untouched tasks of all other leases.

    If tasks of other leases have started already, keep no suspect: give back all of them instead.
    """
    found = suspects(facts)
    if not found:
        return
    others = [record for record in facts.leases.values() if record not in found]
    # If tasks of other leases have started, one of them or a suspect could kill this worker, and the loss would count
    # for all these chunks. So the worker gives back all suspects.
    company = any(record.started for record in others)
    going = return_untouched(facts, found if company else found[1:] + others)
    # Without a pause that grows, this worker could retrieve the same suspects again at once, in an endless loop.
    if company and going:
        facts.resume_at_us = now_us + facts.pause_us
        facts.pause_us *= 2


def _give_back(facts: Facts, returns: list[Return]) -> None:
    for first in range(0, len(returns), BULK_ITEMS):
        facts.out.append(do.GiveBackTasks(returns[first : first + BULK_ITEMS]))


def download(facts: Facts) -> None:
    """Download payloads a little before the executors need them; give back tasks if their links may have expired."""
    full = full_accounts(facts)
    for record in facts.leases.values():
        startable = record.unfit is None and has_room(facts, record.lease)
        if not record.unfetched or record.downloading or not startable:
            continue
        if record.undeliverable:
            return_untouched(facts, [record])
            continue
        mean_us = facts.durations_of(record.lease).mean_us
        few = record.ready_tasks < 2 * facts.wanted_executors
        wanted = few or record.ready_tasks * mean_us < HORIZON_US * facts.wanted_executors
        if wanted and record.lease.account not in full and may_download(facts, record):
            record.downloading = True
            facts.out.append(do.Download(record.lease, record.unfetched[0]))


def retrieve(facts: Facts, now_us: int) -> None:
    """Ask the master for chunks before the executors run out of work."""
    if facts.retrieving or now_us < facts.retrieve_at_us or not takes_on(facts, now_us):
        return
    waiting_us = 0.0
    for record in facts.leases.values():
        untouched = record.untouched
        if untouched and record.unfit is None and has_room(facts, record.lease):
            mean_us = facts.durations_of(record.lease).mean_us
            # If the duration of these tasks is unknown, their chunk counts as enough work for one executor.
            waiting_us += untouched * mean_us if mean_us else HORIZON_US
    chunks = chunks_needed(_free_in_us(facts, now_us), waiting_us, facts.chunk_us, facts.wanted_executors)
    if chunks:
        facts.retrieving = True
        idle = any(executor.usable and executor.running is None for executor in facts.executors.values())
        facts.retrieve(min(chunks, BULK_ITEMS), HOLD_S if idle or not facts.holds else AHEAD_HOLD_S)


def publish(facts: Facts, now_us: int) -> None:
    """Publish results in bulk: urgent results at once, all others after some time or when they have reached some size.

    Results are urgent if a client may be waiting for them, or if their package seems to have no budget left.
    """
    short_of_budget = any(not is_payable(facts, record) for record in facts.leases.values() if record.ready)
    idle = any(executor.usable and executor.running is None for executor in facts.executors.values())
    if not idle and facts.drain_started_at_us is None:
        facts.publish_now = False
    facts.publish_now = facts.publish_now or short_of_budget
    free = [
        record
        for record in facts.leases.values()
        if not record.publishing and not record.closing and may_publish(facts, record)
    ]
    # A retrieval is under way, so a free executor gets work in a moment. The last tasks of a chunk seldom end at the
    # same time, so near the end of nearly every chunk an executor is free for a moment. If the worker published at each
    # such moment, each chunk would need two publications.
    refilled = facts.retrieving and not short_of_budget and all(map(_renews, facts.leases.values()))
    due = (
        (facts.publish_now and not refilled)
        or any(_due(facts, record, now_us) for record in free)
        or _any_last_here(facts, free)
        or (facts.holds and sum([record.pending_bytes for record in free]) >= PUBLISH_BYTES)
    )
    # Large results of each account travel on their own. An upload may be repeated for a long time, and results of other
    # accounts must not wait behind it.
    made: dict[str | None, list[Publication]] = {}
    for record in free:
        done = record.exhausted and not record.returning
        # For an exhausted lease the worker publishes even without results, to close the lease.
        if (due and record.pending) or (done and not record.pending):
            record.report_cost(facts.unreported_us)
            facts.durations_of(record.lease).publications += 1
            made.setdefault(record.uploads_next_for, []).extend(publishing.publications(record))
    # Each lease has at most one batch of publications under way. If further results of the lease are urgent, they are
    # sent right after this batch.
    facts.publish_now = facts.publish_now and any(record.pending for record in facts.leases.values())
    if made:
        _publish(facts, made, now_us)


def _publish(facts: Facts, made: dict[str | None, list[Publication]], now_us: int) -> None:
    """Give one Publish instruction for each key of `made`. Delay the next beat if the instructions renew all leases.

    The keys are those of `Facts.publish_jobs`.
    """
    uploading = any(record.uploads_for is not None for record in _alive(facts))
    others = _others(facts, {each.lease_id for some in made.values() for each in some})
    # The agent sends publications without uploads soonest, so the request with these also renews the other leases.
    for account in sorted(made, key=lambda account: account is not None):
        facts.publish_jobs[account] += 1
        facts.out.append(do.Publish(made[account], others, account))
        others = None if others is None else []
    if others is not None and not uploading and facts.beat_at_us != NEVER:
        # The answer will move the next beat. If the answer does not come soon, the beat renews the leases after all.
        # The beat is not delayed during an upload: the upload may take longer than its lease lasts, and only a beat
        # renews this lease meanwhile.
        facts.beat_at_us = max(facts.beat_at_us, now_us + beat_us(_alive(facts)) // 4 if _alive(facts) else 0)


def _any_last_here(facts: Facts, free: list[LeaseRecord]) -> bool:
    """Whether a package of these leases has pending results, and none of its tasks here waits or runs any more.

    The package's client may be waiting for these results, even if other packages run here.
    """
    done = [record for record in free if record.exhausted and record.pending and not record.returning]
    if not done:
        return False
    unfinished = {record.lease.package_id for record in facts.leases.values() if not record.exhausted}
    return any(record.lease.package_id not in unfinished for record in done)


def publication_at_us(facts: Facts, record: LeaseRecord) -> int:
    """Return the latest time for the publication of the pending results of a lease."""
    lease = record.lease
    collect_us = facts.durations_of(lease).collect_us(lease.collect_us)
    if _renews(record) and collect_us >= LONG_US and record.exhausted and not record.returning:
        # The chunk of such a lease keeps all executors busy for about as long as the worker may collect the results. If
        # the last results waited until the end of this time, the master would be late to cut the chunk that a worker
        # needs next.
        collect_us //= 2
    return record.pending_at_us + collect_us


def _due(facts: Facts, record: LeaseRecord, now_us: int) -> bool:
    if not record.pending:
        return False
    many = PUBLICATION_TASKS * (PARTS if _renews(record) else 1)
    full = len(record.pending) >= many or record.pending_bytes >= PUBLISH_BYTES
    return full or now_us >= publication_at_us(facts, record)


def extend(facts: Facts, now_us: int) -> None:
    """Renew the leases when a beat is due."""
    if now_us < facts.beat_at_us or facts.beating:
        return
    alive = _alive(facts)
    if not alive:
        facts.beat_at_us = NEVER
        return
    facts.beat_at_us = now_us + beat_us(alive)
    facts.beating = True
    facts.out.append(do.Extend([record.reference() for record in alive]))


def beat_us(records: Iterable[LeaseRecord]) -> int:
    """Return the longest time between two beats for these leases, in microseconds; there is at least one lease."""
    # The shortest lease sets the pace: a lease without a beat expires, and another worker runs its tasks a second time.
    leases = [record.lease for record in records]
    return int(min(min(lease.lease_s / BEATS, lease.beat_s or lease.lease_s) for lease in leases) * 1e6)


def renewed(facts: Facts, lease_ids: Container[str], now_us: int) -> None:
    """Delay the next beat if a publication has renewed all leases; `lease_ids` are the leases in its answer."""
    alive = _alive(facts)
    # The request does not renew a lease that came while the request was under way. Without this condition, the lease
    # would expire before the beat.
    if alive and not facts.beating and all(_renews(record) and record.lease.lease_id in lease_ids for record in alive):
        facts.beat_at_us = now_us + beat_us(alive)


def _alive(facts: Facts) -> list[LeaseRecord]:
    return [record for record in facts.leases.values() if not record.closing]


def _renews(record: LeaseRecord) -> bool:
    """Whether publications can renew this lease, as beats do."""
    return record.lease.beat_s > 0


def _others(facts: Facts, published: Container[str]) -> list[LeaseRef] | None:
    """Return the leases that a publish request renews besides those of its publications; None if it renews none.

    If another publication of a lease is under way, that publication may close the lease, so this request must not renew
    it.
    """
    alive = _alive(facts)
    if not all(map(_renews, alive)):
        return None
    others = [each for each in alive if each.lease.lease_id not in published and not each.publishing]
    return [each.reference() for each in others][:BULK_ITEMS]
