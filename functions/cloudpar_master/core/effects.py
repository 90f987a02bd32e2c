"""Effects: work outside the head that a fold makes necessary, such as sending chunks or charging the account.

The master computes the effects from the head, and does not store them. If a master dies after it has saved a head and
before it has carried out the effects, no effect is lost: the master that folds the package next computes them again.
"""

from msgspec import Struct

from . import pacing
from .head import Head, OpenRange
from .policy import Policy


class Reserve(Struct, frozen=True):
    """Request up to `wanted_us` from the account, as slice number `slice`. The answer is the event QuotaGranted."""

    slice: int
    wanted_us: int


class Send(Struct, frozen=True):
    """Put chunks into the queue.

    The answer is the event Sent, which names the chunks that the queue has accepted. If the queue has accepted no
    chunk, there is no event.
    """

    chunks: list[OpenRange]


class Settle(Struct, frozen=True):
    """Charge the account for `used_us`, and give the rest of the slices back. The answer is the event Settled."""

    used_us: int


class Delete(Struct, frozen=True):
    """Remove the task data and the results of a package that stores `kept_bytes` (Policy) or more.

    The answer is the event Deleted, once everything is removed.
    """


class Forget(Struct, frozen=True):
    """Remove a package's tombstone, and all that is still stored of the package. No event answers this effect."""


Effect = Reserve | Send | Settle | Delete | Forget

RETRY_S = 2.0
"""If a fold makes effects necessary, its package is due again after this many seconds: the master that should carry out
the effects may die or fail."""


LATE_PAUSES = 10
"""If a package has pauses between its folds (pacing.pause_s), the timer folds it after this many pauses at the latest.
The package's last publications may wait in the inbox, and perhaps no later request folds them."""


def pending(head: Head, policy: Policy) -> list[Effect]:
    """Return the effects to carry out now. Carrying out an effect twice does no harm."""
    life, quota = head.life, head.quota
    effects: list[Effect] = []
    if quota.wanted_us:
        effects.append(Reserve(quota.next_slice, quota.wanted_us))
    unsent = [] if quota.reserve_spent else head.tasks.unsent
    if unsent:
        effects.append(Send(unsent))
    # Settling is final, so it waits until workers have reported the time of all stopped tasks, or until `settle_at`.
    if life.ended and not life.settled and (not head.tasks.stopping or head.now >= (life.settle_at or 0.0)):
        effects.append(Settle(quota.used_us))
    # A package that stores less than `kept_bytes` is a tombstone here already: the fold made it one (life.drop_little).
    if life.unneeded and life.deleted_at is None:
        effects.append(Delete())
    if life.deleted_at is not None and head.now >= life.deleted_at + policy.tombstone_s:
        effects.append(Forget())
    return effects


def due_at(head: Head, policy: Policy) -> float:
    """Return the time from which a fold of this package has something to do even if there are no further events."""
    life = head.life
    times = [head.started_at + policy.lifetime_s] if not life.ended else []
    if life.deleted_at is not None:
        times.append(life.deleted_at + policy.tombstone_s)
    elif life.settled:
        times.append((life.ended_at or head.now) + policy.retention_s)
    elif life.ended:
        times.append((life.settle_at or head.now) if head.tasks.stopping else head.now)
    if not life.ended and head.quota.ask_again_at > head.now:
        times.append(head.quota.ask_again_at)
    if head.tasks.open:
        times.append(head.tasks.resend_at)
    effects = pending(head, policy)
    if effects:
        # A head shows only after the next event that its chunks were sent.
        sending = all(isinstance(effect, Send) for effect in effects)
        times.append(head.now + (policy.send_again_s if sending else RETRY_S))
    return min(times)


def look_at(head: Head, policy: Policy) -> float:
    """Return the time at which the timer should fold this package, if no request has done so earlier.

    If publications may wait in the inbox, the time is at most LATE_PAUSES pauses after the head's last fold, so that
    the timer folds the waiting publications.
    """
    pause_s = pacing.pause_s(head, policy)
    due = due_at(head, policy)
    return min(due, head.now + LATE_PAUSES * pause_s) if pause_s else due
