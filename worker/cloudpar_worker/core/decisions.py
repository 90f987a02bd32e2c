"""Derives instructions from the facts. `decide` calls one function for each kind of decision, in a fixed order."""

from collections.abc import Sequence
from typing import Final

from cloudpar_protocol.payloads import TaskResult

from . import instructions as do
from .assignment import feed
from .backlog import may_publish
from .executor_record import ExecutorRecord
from .facts import NEVER, Facts
from .master_policy import (
    download,
    extend,
    isolate,
    publication_at_us,
    publish,
    retrieve,
    return_untouched,
    share,
)
from .peeking import fetch, peek
from .supervision import RECALL_VISIBLE_US, STUCK_US, measure, recall, spawn, stop

LARGE_BYTES: Final = 256 * 1024
"""After a result of at least this many bytes `decide` runs at once, because sending such a result takes longer than
`decide`.
"""
FULL_US: Final = 100_000
"""While results arrive without a break, `decide` runs at least once in this time, in microseconds."""
ABANDON_RETRIEVAL_US: Final = 1_000_000
"""How long a drain waits for the answer to a retrieval, in microseconds from the start of the drain. If the worker ends
before the answer arrives, the chunks in the answer wait until their leases expire.
"""
GIVE_UP_US: Final = 60_000_000
"""A drain ends if, for this time in microseconds, no executor has had tasks and no request to the master has succeeded.
Leases of 60 s have expired by then, and half of the 2 minutes' notice of a spot interruption has passed.
"""


def decide_after_results(facts: Facts, executor: ExecutorRecord, results: Sequence[TaskResult], now_us: int) -> None:
    """Make the decisions that are due after results of an executor.

    Usually only the executor's next tasks are urgent, and all other decisions are delayed a little. `decide` looks at
    each executor and each lease: if it ran after every short task of 40 executors, it would take more than one core.
    """
    if _can_wait(facts, executor, results, now_us):
        feed(facts, now_us, [executor])
        run = executor.running
        # If the executor is free now, or runs another package, the package of these results may be complete, and its
        # client may be waiting. Otherwise `decide` can wait.
        if run is not None and run.record.lease.package_id == executor.last_package_id:
            facts.deadline_at_us = min(facts.deadline_at_us, now_us + FULL_US)
            return
    decide(facts, now_us)


def _can_wait(facts: Facts, executor: ExecutorRecord, results: Sequence[TaskResult], now_us: int) -> bool:
    """Whether only the executor's next tasks are urgent after these results.

    Large results are urgent, so that their upload starts while further tasks run. If they waited for FULL_US, more of
    them would be uploaded only after the last task.
    """
    if facts.drain_started_at_us is not None or executor.stop is not None:
        return False
    if now_us - facts.decided_at_us > FULL_US or now_us >= facts.deadline_at_us:
        return False
    run = executor.running
    if run is None:
        if executor.worn or facts.others_wait or facts.fetching:
            return False  # a fresh executor, or a chunk of another package, comes before the next task
    elif not run.record.wants(run.next):
        return False
    return not any(result.data is not None and len(result.data) >= LARGE_BYTES for result in results)


def decide(facts: Facts, now_us: int) -> None:
    """Append all instructions that are due to `facts.out`, and set the next deadline."""
    facts.decided_at_us = now_us
    # The order matters. Stopping comes before spawning, so that stopped executors are replaced at once. Tasks that must
    # not start here are given back before tasks are fed. Publishing comes after feeding, since it depends on whether an
    # executor is idle.
    stop(facts, now_us)
    spawn(facts, now_us)
    if facts.drain_started_at_us is not None:
        return_untouched(facts, facts.leases.values())
    else:
        return_untouched(facts, [record for record in facts.leases.values() if record.unfit is not None])
        isolate(facts, now_us)
        recall(facts, now_us)
        fetch(facts, now_us)
        feed(facts, now_us, list(facts.executors.values()))
        share(facts, now_us)
        download(facts)
        retrieve(facts, now_us)
        peek(facts, now_us)
    publish(facts, now_us)
    extend(facts, now_us)
    measure(facts, now_us)
    _exit(facts, now_us)
    facts.deadline_at_us = _deadline(facts, now_us)


def give_up(facts: Facts, stalled_us: int, now_us: int) -> None:
    """End a drain that has waited too long for the master. Call this after a failed request.

    While executors have tasks, a drain waits without limit.
    """
    if facts.drain_started_at_us is not None and not facts.busy:
        facts.gave_up = min(stalled_us, now_us - facts.last_busy_at_us) >= GIVE_UP_US


def _exit(facts: Facts, now_us: int) -> None:
    if facts.drain_started_at_us is None or facts.exited:
        return
    if facts.busy:
        facts.last_busy_at_us = now_us
    retrieving = (facts.retrieving or facts.fetching) and now_us - facts.drain_started_at_us < ABANDON_RETRIEVAL_US
    if facts.gave_up or not (facts.leases or retrieving):
        facts.exited = True
        facts.out.append(do.Exit(list(facts.leases.values())))


def _deadline(facts: Facts, now_us: int) -> int:
    """Return the next time at which `decide` may have something to do without a new stimulus."""
    times = [facts.measure_at_us, facts.beat_at_us if not facts.beating else NEVER]
    if facts.drain_started_at_us is None:
        due = [facts.peek_at_us, facts.fetch_ends_at_us]
        due += [] if facts.retrieving else [facts.retrieve_at_us, facts.resume_at_us]
        times += [each for each in due if each > now_us]
    if facts.spawn_at_us > now_us:
        times.append(facts.spawn_at_us)
    if facts.drain_started_at_us is not None and now_us < facts.drain_started_at_us + ABANDON_RETRIEVAL_US:
        times.append(facts.drain_started_at_us + ABANDON_RETRIEVAL_US)
    times += [
        publication_at_us(facts, record)
        for record in facts.leases.values()
        if record.pending and not record.publishing and may_publish(facts, record)
    ]
    times += [
        at_us for each in facts.executors.values() if (at_us := each.disobeys_at_us) is not None and not each.stop
    ]
    running: dict[str, list[ExecutorRecord]] = {}
    for executor in facts.executors.values():
        run = executor.running
        if run is not None and executor.stop is None:
            if executor.recalled_at_us is not None:
                times.append(executor.recalled_at_us + RECALL_VISIBLE_US)
            elif executor.has_queued():
                times.append(executor.started_at_us + STUCK_US)
            times.append(executor.started_at_us + int(run.record.lease.task_timeout_s * 1e6))
            running.setdefault(run.record.lease.package_id, []).append(executor)
    for package_id, executors in running.items():
        left_us = facts.budgets.left_us(package_id) - sum([now_us - executor.started_at_us for executor in executors])
        times.append(now_us + max(left_us // len(executors), 1))
    return min(times)
