"""Chunks whose workers were lost again and again: what takes its worker along shall take only itself.

The master cannot know which of the chunks that a worker had made an end of it: all count a loss. So a worker that has
such a chunk asks for no other until the master has all of its results; and of several that came together it keeps one,
and gives the others back before it begins, which costs them nothing.
"""

from typing import Final

from .facts import Facts
from .lease_record import LeaseRecord

SUSPECT_ATTEMPT: Final = 3
"""Two workers were lost with it: one loss alone happens to any chunk."""


def suspects(facts: Facts) -> list[LeaseRecord]:
    """The one that this worker keeps first: what has run, what runs, or else what was lost most often."""
    found = [record for record in facts.leases.values() if record.lease.attempt >= SUSPECT_ATTEMPT]
    found.sort(key=lambda record: (record.returning, bool(record.untouched), not record.fed, -record.lease.attempt))
    return found


def may_run(facts: Facts, record: LeaseRecord) -> bool:
    """Whether it endangers no other suspect."""
    return record.lease.attempt < SUSPECT_ATTEMPT or len(suspects(facts)) == 1
