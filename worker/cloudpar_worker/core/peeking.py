"""Lets a busy worker get chunks of further packages, which wait at the master.

If the worker retrieved such chunks at once, they could wait here behind a long task while an executor elsewhere is
free. So the worker only asks whether such chunks exist (a peek, which the master holds open). It fetches the chunks
when an executor here is free or soon will be.
"""

from typing import Final

from cloudpar_protocol.limits import HOLD_S
from cloudpar_protocol.worker_messages import Lease

from .choosing import in_turn, is_short
from .executor_record import FedRun
from .facts import Facts
from .lease_record import LeaseRecord
from .nesting import free_places
from .suspects import takes_on

FETCH_US: Final = 200_000
"""How long a free executor waits for the chunks of a fetch before it starts a long task that is here, in microseconds.
"""

PEEK_AGAIN_US: Final = 100_000
"""How long the worker waits before its next peek if a fetch has brought no chunk that runs next, in microseconds."""

SHORT_US: Final = 500_000
"""If the tasks of a running package are shorter than this on average, in microseconds, an ordinary retrieval brings the
package's next chunk in time. So a peek does not look for chunks of this package.
"""

PACKAGES: Final = 100
"""The most packages that a request names in `besides`. The worker leaves out further packages."""


def peek(facts: Facts, now_us: int) -> None:
    """Send a peek if it is due, if the master holds requests, and if the worker has leases.

    Send no peek in three cases: a request under way may bring chunks of other packages, the master has said that such
    chunks wait, or the worker may not retrieve (see `suspects`).
    """
    under_way = facts.peeking or facts.others_wait or facts.fetching or facts.retrieving
    if not facts.holds or under_way or now_us < facts.peek_at_us or not facts.leases or not takes_on(facts, now_us):
        return
    facts.peeking = True
    facts.retrieve(1, HOLD_S, _at_work(facts), peek=True)


def fetch(facts: Facts, now_us: int) -> None:
    """If chunks of other packages may wait, fetch them when an executor here is free for them or soon will be."""
    ready = [record for record in facts.leases.values() if record.ready]
    idle = sum(executor.usable and executor.running is None for executor in facts.executors.values())
    free = max(min(idle, free_places(facts)), 0)
    if not facts.others_wait or facts.fetching or not takes_on(facts, now_us):
        return
    if not ready:
        return  # an ordinary retrieval also brings chunks of other packages
    following = in_turn(facts, ready, now_us)[0]
    if facts.turns.goes_before_fetched(following) or (free and is_short(facts, following)):
        return  # the next task here goes before fetched tasks in any case, or does not take long
    chunks = free or int(any(is_short(facts, run.record) for run in _running(facts)))
    if chunks:
        facts.others_wait, facts.fetching, facts.fetch_ends_at_us = False, True, now_us + FETCH_US
        waiting = dict.fromkeys(record.lease.package_id for record in facts.leases.values() if record.untouched)
        facts.retrieve(chunks, 0.0, list(waiting)[:PACKAGES])


def overtakes(facts: Facts, lease: Lease) -> bool:
    """Whether a lease that was just retrieved runs before the untouched tasks of the other packages here.

    It does in three cases. First, the lease has the first task of its package, and that task goes before all others.
    Second, its account has no untouched tasks of other packages here. Third, its package is behind all packages that
    have untouched tasks here (Turns.behind_us). In each case more such chunks may wait at the master.

    Otherwise no chunk at the master goes before the tasks here, because the master first hands out chunks of the
    packages that are furthest behind. If the worker fetched more chunks nevertheless, it could collect a chunk of each
    of a thousand packages, and would serve a new package late.
    """
    others = [record.lease for record in facts.leases.values() if record.untouched]
    others = [other for other in others if other.package_id != lease.package_id]
    if lease.account not in {other.account for other in others}:
        return True
    if lease.start == 0 and facts.turns.has_allowance(lease.account):
        return True
    return all(facts.turns.behind_us(lease, other) > 0 for other in others)


def ran_out(facts: Facts, record: LeaseRecord, ready: list[LeaseRecord]) -> None:
    """Handle that a lease has no more ready tasks; `ready` contains the leases that still have ready tasks.

    Let the worker fetch more chunks if three conditions are met: the master holds requests, no lease in `ready` is of
    the package of `record`, and a lease in `ready` may have long tasks. Without the fetch, further tasks of this
    package would wait behind the long tasks.
    """
    package_id = record.lease.package_id
    if facts.holds and all(other.lease.package_id != package_id for other in ready):
        facts.others_wait = facts.others_wait or not all(is_short(facts, other) for other in ready)


def holds_back(facts: Facts, record: LeaseRecord, now_us: int) -> bool:
    """Whether to delay the tasks of a lease, because the chunks of a fetch under way may go before these tasks.

    The delay is at most FETCH_US. Short tasks are not delayed, nor is a first task that goes before all others.
    """
    on_its_way = facts.fetching and now_us < facts.fetch_ends_at_us
    return on_its_way and not facts.turns.goes_before_fetched(record) and not is_short(facts, record)


def _at_work(facts: Facts) -> list[str]:
    """Return the packages that need no fetch: they have untouched tasks here, or short tasks of theirs run here."""
    waiting = [record.lease.package_id for record in facts.leases.values() if record.untouched]
    running = [run.record.lease for run in _running(facts)]
    short = [lease.package_id for lease in running if 0 < facts.durations_of(lease).mean_us < SHORT_US]
    return list(dict.fromkeys(waiting + short))[:PACKAGES]


def _running(facts: Facts) -> list[FedRun]:
    return [executor.running for executor in facts.executors.values() if executor.running]
