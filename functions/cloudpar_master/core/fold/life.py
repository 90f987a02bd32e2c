"""How a package ends, and what happens to it afterwards."""

from collections.abc import Sequence

from cloudpar_master.core.head import (
    BLOB_BYTES,
    HOST_BYTES,
    LACKS_BYTES,
    MESSAGE_BYTES,
    SET_ASIDE,
    Head,
    State,
    cut,
)
from cloudpar_protocol import ranges
from cloudpar_protocol.payloads import TaskResult, Unfit

from .draft import Draft

DAY_S = 86400


def end(draft: Draft, state: State, reason: str | None = None, message: str | None = None) -> None:
    """End the package. If it has ended already, nothing changes.

    Workers learn of the end from the reply to their next publication or beat, and stop the package's tasks. They have
    twice the lease time to report how long these tasks ran.
    """
    head, life, tasks = draft.head, draft.head.life, draft.head.tasks
    if life.ended:
        return
    life.state, life.reason, life.ended_at = state, reason, head.now
    life.message = None if message is None else cut(message, MESSAGE_BYTES)
    # If the quota is used up, no more time can be charged, so the package does not wait for reports of more time.
    still_open = [(each.start, each.end) for each in tasks.open]
    tasks.stopping = ranges.union(tasks.stopping, still_open) if reason != "quota" else []
    tasks.open, head.quota.wanted_us = [], 0
    life.settle_at = head.now + 2 * draft.policy.lease_s


def lose_results(draft: Draft, message: str) -> None:
    """Record that results of the package cannot be read. A completed package then fails.

    If a client has acknowledged the package, nothing changes: the master has deleted the results because of the
    acknowledgement.
    """
    life = draft.head.life
    if life.state == "completed" and not life.unreadable:
        life.state, life.reason, life.message = "failed", "broken", cut(message, MESSAGE_BYTES)


def complete(draft: Draft) -> None:
    """End a package whose tasks are all done, if its reserve covers the time that they used.

    A package that has used more than its reserve first waits for another slice. After its end the package would get no
    slice. If the account then had too little free compute time, it would not pay for the whole excess.
    """
    head, tasks = draft.head, draft.head.tasks
    if tasks.cursor == tasks.count and not tasks.open and head.quota.used_us <= head.quota.reserved_us:
        end(draft, "completed")


def expire(draft: Draft) -> None:
    """Make the changes that depend only on the time.

    End a package whose tasks are not all done after `lifetime_s`. In a running package, stop waiting for the time of
    stopped tasks after `settle_at`. Expire a settled package that no client has acknowledged within `retention_s`.
    """
    head, life, tasks, policy = draft.head, draft.head.life, draft.head.tasks, draft.policy
    if tasks.done < tasks.count and head.now >= head.started_at + policy.lifetime_s:
        days = policy.lifetime_s / DAY_S
        end(draft, "failed", "expired", f"it still ran after {days:g} days, the most that a package may")
    if not life.ended and head.now >= (life.settle_at or 0.0):
        tasks.stopping = []
    retained_until = (life.ended_at or head.now) + policy.retention_s
    # Expire a package only once: the message names the state in which the package ended, and after the first time the
    # state is "expired".
    unread = life.settled and life.acknowledged_at is None and life.state != "expired"
    if unread and head.now >= retained_until:
        days = policy.retention_s / DAY_S
        life.message = f"no client acknowledged it for {days:g} days after it ended ({head.client_state})"
        life.state, life.reason = "expired", "expired"


def acknowledge(draft: Draft) -> None:
    """Record the time at which a client first acknowledged the package."""
    life = draft.head.life
    life.acknowledged_at = life.acknowledged_at or draft.head.now


def drop_little(draft: Draft) -> None:
    """Turn a small package that is not needed any more into a tombstone, without removing its data.

    The data is removed together with the tombstone, because a separate removal would cost more requests.
    """
    head, life = draft.head, draft.head.life
    if life.unneeded and head.payload_bytes < draft.policy.kept_bytes:
        life.deleted_at = life.deleted_at or head.now


def count_uploads(head: Head, results: Sequence[TaskResult]) -> None:
    """Add the sizes of uploaded results, and BLOB_BYTES for each of them, to the package's stored bytes.

    An upload whose result is not committed counts, too, because it stays until the package is deleted.
    """
    sizes = [result.blob.size for result in results if result.blob is not None]
    head.life.stored_bytes += sum(sizes) + BLOB_BYTES * len(sizes)


def set_aside(draft: Draft, unfit: Unfit | None) -> None:
    """Record a worker that cannot run the package, so that the client learns of this worker.

    A head records at most SET_ASIDE workers. If `unfit` is None, the worker lacks nothing, and nothing is recorded.
    """
    known = draft.head.life.set_aside
    if unfit is not None and len(known) < SET_ASIDE:
        short = Unfit(cut(unfit.host, HOST_BYTES), cut(unfit.lacks, LACKS_BYTES))
        if short not in known:
            known.append(short)


def strand(draft: Draft, message: str | None) -> None:
    """Record that none of the live workers can run this package.

    Without a `message`, some workers have the package's version of Python, but each of them lacks something else. These
    workers run the tasks nevertheless, and the tasks' errors say what is missing. With a `message`, no worker has this
    version of Python. The package fails with the message unless a worker with this version comes within `grace_s`.
    """
    life, now = draft.head.life, draft.head.now
    if message is None:
        # A worker has the package's version of Python now. If the last such worker leaves, a new time of grace starts.
        life.run_anyway, life.stranded_at = True, None
        return
    life.stranded_at = now if life.stranded_at is None else life.stranded_at
    if now >= life.stranded_at + draft.policy.grace_s:
        end(draft, "failed", "python", message)
