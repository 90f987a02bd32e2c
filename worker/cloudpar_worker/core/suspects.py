"""A chunk with which at least two workers were lost runs alone, so that it cannot take other tasks down.

When a worker is lost, the master cannot tell which of the worker's chunks killed it, so the master counts an attempt
for all of them. From the attempt SUSPECT_ATTEMPT on, a chunk is a suspect. A worker that has a suspect retrieves
nothing until it has published all results of the suspect, or has given it back. There is one exception: while all
running tasks of the suspect wait for tasks of their own, the worker may retrieve chunks, so that it can run the tasks
for which they wait.

The worker keeps one suspect and gives back all other tasks that no executor has yet, which adds no attempt to their
chunks. If tasks of other chunks have started already, they could kill this worker too. The worker then gives back all
suspects, so that a worker without started tasks can run them. After each such give-back the worker pauses: it retrieves
nothing until the pause is over, or until none of its leases has started tasks. Each pause is twice as long as the one
before. Without the pause the worker could get the same suspects back at once, again and again.
"""

from typing import Final

from cloudpar_protocol.worker_messages import Lease

from .facts import Facts
from .lease_record import LeaseRecord
from .nesting import awaits

SUSPECT_ATTEMPT: Final = 3
"""From this attempt on a chunk is a suspect, because two workers were lost while they had it. A single such loss can
happen to any chunk.
"""


def is_suspect(lease: Lease) -> bool:
    """Whether the chunk of a lease may have killed at least two workers."""
    return lease.attempt >= SUSPECT_ATTEMPT


def suspects(facts: Facts) -> list[LeaseRecord]:
    """Return the suspects here, the most preferred first; the worker keeps the first one.

    A suspect is preferred if it is not being given back. Among equals, the following are preferred, in this order: a
    suspect without untouched tasks, one with tasks in an executor, one that no other worker can run, and the one with
    the most attempts. The list leaves out a suspect if all its running tasks wait for tasks of their own: otherwise
    those tasks could not run here beside it.
    """
    found = [
        each for each in facts.leases.values() if is_suspect(each.lease) and not (facts.nested and awaits(facts, each))
    ]
    found.sort(key=_preference)
    return found


def _preference(record: LeaseRecord) -> tuple[bool, bool, bool, bool, int]:
    # If this worker lacks something for two packages, the master may hand out chunks of both in turn, and may say of
    # each chunk that no other worker can run it. Without this order the worker could each time keep the suspect of the
    # other package, and would never run a task.
    lease = record.lease
    return record.returning, bool(record.untouched), not record.fed, lease.elsewhere, -lease.attempt


def takes_on(facts: Facts, now_us: int) -> bool:
    """Whether this worker may retrieve more chunks now.

    It may not while it has a suspect. It also may not in the pause after a give-back of suspects, as long as one of its
    leases has started tasks.
    """
    # Without this check the worker would run other tasks beside a suspect. If the suspect then killed the worker, the
    # loss would also count for the chunks of the other tasks, and could make them suspects.
    if suspects(facts):
        return False
    return now_us >= facts.resume_at_us or not any(record.started for record in facts.leases.values())


def runnable(facts: Facts) -> list[LeaseRecord]:
    """Return the leases whose ready tasks may start; none if there is a suspect and another lease."""
    # While the worker has a suspect and another lease, no task starts, not even one of the suspect. `isolate` is giving
    # back the other leases, and a task of them that started now could be lost together with the suspect.
    if len(facts.leases) > 1 and suspects(facts):
        return []
    return [record for record in facts.leases.values() if record.ready and record.unfit is None]
