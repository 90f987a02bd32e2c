"""A chunk with which at least two workers were lost runs alone, so that it cannot take other tasks down.

When a worker is lost, the master cannot tell which of its chunks killed it, so it counts an attempt for all of them.
From the attempt SUSPECT_ATTEMPT on, a chunk is a suspect. A worker that has a suspect retrieves nothing until it has
published all results of the suspect, or has given it back. An exception: while all running tasks of the suspect wait
for tasks of their own, the worker may retrieve chunks, so that it can run those tasks.

The worker keeps one suspect and gives back all other tasks that no executor has yet, which adds no attempt to their
chunks. If tasks of other chunks have started already, they could kill this worker too. The worker then gives back all
suspects, so that a worker without started tasks can run them. After each such give-back it retrieves nothing for a
pause, twice as long each time, or until none of its leases has started tasks. Without the pause it could get the
suspects back at once, again and again.
"""

from typing import Final

from cloudpar_protocol.worker_messages import Lease

from .facts import Facts
from .lease_record import LeaseRecord
from .nesting import awaits

SUSPECT_ATTEMPT: Final = 3
"""The attempt from which a chunk is a suspect, because two workers were lost with it. One loss can happen to any chunk.
"""


def is_suspect(lease: Lease) -> bool:
    """Whether the chunk of a lease may have killed at least two workers."""
    return lease.attempt >= SUSPECT_ATTEMPT


def suspects(facts: Facts) -> list[LeaseRecord]:
    """All suspects here; the first is the one that this worker keeps.

    It keeps one that is not being given back, if there is one. Among these it prefers one without untouched tasks, then
    one of which an executor has tasks, then one that no other worker can run, then the one with the most attempts. A
    suspect whose running tasks all wait for tasks of their own does not count meanwhile: otherwise those tasks could
    not run beside it.
    """
    found = [
        each for each in facts.leases.values() if is_suspect(each.lease) and not (facts.nested and awaits(facts, each))
    ]
    found.sort(key=_preference)
    return found


def _preference(record: LeaseRecord) -> tuple[bool, bool, bool, bool, int]:
    # A worker that lacks something for two packages gets each of them in turn as one that no other worker can run. If
    # it kept a suspect of the other package each time, it would never run a task.
    lease = record.lease
    return record.returning, bool(record.untouched), not record.fed, lease.elsewhere, -lease.attempt


def takes_on(facts: Facts, now_us: int) -> bool:
    """Whether this worker may retrieve more now.

    It may not while a suspect is here. In the pause after it gave back suspects, it may not while one of its leases has
    started tasks.
    """
    # Without this the worker would run other tasks beside a suspect, and if the suspect kills the worker, they would
    # count one more lost worker and become suspects themselves.
    if suspects(facts):
        return False
    return now_us >= facts.resume_at_us or not any(record.started for record in facts.leases.values())


def runnable(facts: Facts) -> list[LeaseRecord]:
    """The leases whose ready tasks may start: a suspect if it is the only lease, all others if no suspect is here."""
    # While another lease is still here, nothing starts, not even the suspect: `isolate` is giving back the others, and
    # a task that started now would share the suspect's fate.
    if len(facts.leases) > 1 and suspects(facts):
        return []
    return [record for record in facts.leases.values() if record.ready and record.unfit is None]
