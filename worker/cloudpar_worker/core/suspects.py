"""Chunks whose workers were lost again and again: what takes its worker along shall take only itself.

The master cannot know which of the chunks that a worker had made an end of it: all count a loss. So such a chunk runs
alone. A worker that has one asks for no other until the master has all of its results; of all that came together it
keeps one suspect, and gives the rest back before that begins, which costs nothing. If something else has begun already,
which may be the end of this worker too, all suspects go back, to a worker that has nothing else. If they come again,
there is none: this worker takes on less and less, until it has nothing else itself.
"""

from typing import Final

from cloudpar_protocol.worker_messages import Lease

from .facts import Facts
from .lease_record import LeaseRecord
from .nesting import awaits

SUSPECT_ATTEMPT: Final = 3
"""Two workers were lost with it: one loss alone happens to any chunk."""


def is_suspect(lease: Lease) -> bool:
    """Whether it may be what took two workers along."""
    return lease.attempt >= SUSPECT_ATTEMPT


def suspects(facts: Facts) -> list[LeaseRecord]:
    """The one that this worker keeps first: what has run, what runs, or else what was lost most often.

    One that waits for tasks of its own is none for so long: they could not run beside it.
    """
    found = [
        each for each in facts.leases.values() if is_suspect(each.lease) and not (facts.nested and awaits(facts, each))
    ]
    found.sort(key=lambda record: (record.returning, bool(record.untouched), not record.fed, -record.lease.attempt))
    return found


def takes_on(facts: Facts, now_us: int) -> bool:
    """Whether this worker may ask for more now: not beside a suspect, nor beside what runs since one went back."""
    if suspects(facts):
        return False
    return now_us >= facts.resume_at_us or not any(record.started for record in facts.leases.values())


def runnable(facts: Facts) -> list[LeaseRecord]:
    """What can be fed: a suspect alone, and all else once no suspect is here."""
    if len(facts.leases) > 1 and suspects(facts):
        return []
    return [record for record in facts.leases.values() if record.ready and record.unfit is None]
