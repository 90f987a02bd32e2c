"""Chunks whose workers were lost repeatedly run alone, so that they cannot take other tasks down.

When a worker is lost, the master cannot tell which of its chunks killed it, so it counts an attempt for all of them. A
chunk at SUSPECT_ATTEMPT is a suspect. A worker that has a suspect retrieves nothing until the master has all of its
results. Of the chunks that came together with it, the worker keeps one suspect and gives back the rest before it
starts, which costs nothing. If other tasks have started already, and may kill this worker too, all suspects go back,
for a worker that has nothing else. If this worker gets them again, there is no such worker. It then pauses for longer
and longer times, until it has nothing else itself.
"""

from typing import Final

from cloudpar_protocol.worker_messages import Lease

from .facts import Facts
from .lease_record import LeaseRecord
from .nesting import awaits

SUSPECT_ATTEMPT: Final = 3
"""The attempt from which a chunk is a suspect: two workers were lost with it. One loss can happen to any chunk."""


def is_suspect(lease: Lease) -> bool:
    """Whether a chunk may have killed two workers."""
    return lease.attempt >= SUSPECT_ATTEMPT


def suspects(facts: Facts) -> list[LeaseRecord]:
    """All suspects here; the first is the one that this worker keeps.

    It keeps one that has run or runs, or else the one with the most attempts. A suspect that waits for tasks of its own
    does not count meanwhile: its tasks could not run beside it.
    """
    found = [
        each for each in facts.leases.values() if is_suspect(each.lease) and not (facts.nested and awaits(facts, each))
    ]
    found.sort(key=lambda record: (record.returning, bool(record.untouched), not record.fed, -record.lease.attempt))
    return found


def takes_on(facts: Facts, now_us: int) -> bool:
    """Whether this worker may retrieve more now: not beside a suspect, nor in the pause after one was given back."""
    # Without this the worker would run other tasks beside a suspect, and if the suspect kills the worker, they would
    # count one more lost worker and become suspects themselves.
    if suspects(facts):
        return False
    return now_us >= facts.resume_at_us or not any(record.started for record in facts.leases.values())


def runnable(facts: Facts) -> list[LeaseRecord]:
    """The leases that executors may get: a suspect if it is alone, all others once no suspect is here."""
    # While another lease is still here, nothing starts, not even the suspect: `isolate` is giving back the others, and
    # a task that started now would share the suspect's fate.
    if len(facts.leases) > 1 and suspects(facts):
        return []
    return [record for record in facts.leases.values() if record.ready and record.unfit is None]
