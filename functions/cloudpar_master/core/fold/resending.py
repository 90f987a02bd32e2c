"""Sends a package's chunks again if there was no report on any of them for long: the queue may have lost messages.

A queue is not part of a backup. The heads in a restored table list chunks as sent, although workers have taken the
messages of these chunks since the backup.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from cloudpar_master.core.events import Cleared, Event, GaveBack, Lost, Published
from cloudpar_master.core.policy import Policy

from .draft import Draft

MARGIN_S = 600.0
"""How many seconds, beyond the longest time of a task, the master waits for a report before it sends chunks again. In
this time a chunk can wait in the queue, and a worker can download its data."""

DAY_S = 86400.0
"""The longest time between two repetitions, in seconds."""


def quiet_s(policy: Policy) -> float:
    """Return for how many seconds a package waits for a report on its chunks before the master sends them again.

    A worker reports each task that ends, and each task ends within its time limit.
    """
    return policy.task_timeout_s + MARGIN_S


def resend(draft: Draft, events: Sequence[Event]) -> None:
    """Mark all chunks as unsent if neither a worker nor the queue has reported on the package for long."""
    head, tasks = draft.head, draft.head.tasks
    heard = any(isinstance(event, Published | GaveBack | Lost | Cleared) for event in events)
    # Heads of earlier releases do not say when the last report came (`resend_at` is 0).
    if heard or not tasks.open or not tasks.resend_at:
        tasks.heard_at, tasks.resend_at = head.now, head.now + quiet_s(draft.policy)
    elif head.now >= tasks.resend_at:
        # The chunks keep their generation: a message that waits in a long queue stays valid. With a new generation each
        # time, the chunks of a package would go to the end of the queue again and again, and a worker would lose the
        # chunk that it runs.
        tasks.open = [replace(each, sent=False) for each in tasks.open]
        # Each repetition may add a message for each chunk to a queue that no worker reads at the moment. So the time
        # between repetitions grows.
        tasks.resend_at = head.now + min(head.now - tasks.heard_at, DAY_S)
