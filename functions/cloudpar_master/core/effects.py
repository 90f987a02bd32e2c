"""What remains to be done in the outside world for a head. Read off the head, so that nobody can forget it."""

from msgspec import Struct

from .head import Head, Piece
from .policy import Policy


class Reserve(Struct, frozen=True):
    """Ask the account for a slice; answered by QuotaGranted."""

    slice: int
    wanted_us: int


class Send(Struct, frozen=True):
    """Put chunks into the queue; answered by Sent."""

    chunks: list[Piece]


class Settle(Struct, frozen=True):
    """Charge the account and give the rest of the slices back; answered by Settled."""

    used_us: int


class Delete(Struct, frozen=True):
    """Free the storage of a bulky package; answered by Deleted."""


class Forget(Struct, frozen=True):
    """Remove the tombstone."""


Effect = Reserve | Send | Settle | Delete | Forget

RETRY_S = 2.0
"""An effect that is still there after this time was lost with whoever should have carried it out."""


def pending(head: Head, policy: Policy) -> list[Effect]:
    """The effects to carry out now, each idempotent."""
    effects: list[Effect] = []
    if head.slice_us:
        effects.append(Reserve(head.slice, head.slice_us))
    unsent = [] if head.dry else head.unsent
    if unsent:
        effects.append(Send(unsent))
    if head.ended and not head.settled and (not head.stopping or head.now >= (head.settle_at or 0.0)):
        effects.append(Settle(head.used_us))
    if head.unneeded and head.deleted_at is None and head.stored_bytes >= policy.kept_bytes:
        effects.append(Delete())
    if head.deleted_at is not None and head.now >= head.deleted_at + policy.tombstone_s:
        effects.append(Forget())
    return effects


def due_at(head: Head, policy: Policy) -> float:
    """When the timer should fold this package if nobody else does."""
    times = [head.started_at + policy.lifetime_s] if not head.ended else []
    if head.deleted_at is not None:
        times.append(head.deleted_at + policy.tombstone_s)
    elif head.settled:
        times.append((head.ended_at or head.now) + policy.retention_s)
    elif head.ended:
        times.append((head.settle_at or head.now) if head.stopping else head.now)
    if not head.ended and head.slice_at > head.now:
        times.append(head.slice_at)
    if pending(head, policy):
        times.append(head.now + RETRY_S)
    return min(times)
