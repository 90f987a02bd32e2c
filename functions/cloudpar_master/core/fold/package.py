"""A package is a state machine, and `fold` is its transition. The rest of the master is built on this idea.

    fold(head, events, now) -> (head', results)

Everything that happens to a package is an event. A fold takes some events and makes the next head, with the results
that this head commits. `effects.pending` then computes from the head which effects are left to carry out. The fold is
pure, so it can be tested and simulated, and a master that loses the race to save a head can fold again.

Every event may come twice, late, or after the package has ended. Such an event does no harm. A result is committed only
if its task is in an open range. A give-back or a loss takes only open ranges of the generation that it names. A package
that has ended stays ended.
"""

from collections.abc import Sequence
from typing import NamedTuple

from cloudpar_master.core.events import (
    Acknowledged,
    Broken,
    CancelAsked,
    Cleared,
    Deleted,
    Event,
    ExecutorsIdle,
    GaveBack,
    Lost,
    Placed,
    Published,
    QuotaGranted,
    Sent,
    Settled,
    Stranded,
)
from cloudpar_master.core.head import Head
from cloudpar_master.core.policy import Policy
from cloudpar_protocol import ranges
from cloudpar_protocol.payloads import TaskResult

from . import cancellation, life, open_ranges, pace, quota, resending, tasks
from .draft import Draft, draft_of


class Folded(NamedTuple):
    """The next head, and the results that it commits."""

    head: Head
    results: list[TaskResult]


def fold(head: Head, events: Sequence[Event], now: float, policy: Policy) -> Folded:
    """Fold events into a head.

    Args:
        head: The current state. It is not changed.
        events: Oldest first.
        now: The time in seconds. The clocks of several masters agree only roughly.
        policy: The settings of the deployment.
    """
    draft = draft_of(head, policy, now)
    # Losses are applied last: the last results of a lost worker may be among the other events, and the tasks with these
    # results need not run again.
    for event in sorted(events, key=lambda event: isinstance(event, Lost)):
        _take(draft, event)
    life.expire(draft)
    cancellation.drain(draft)
    # `resend` comes before `refill`, because its time starts again at each fold that finds no open chunk. In the other
    # order, that time could be nearly over when a package that was closed for long gets its first chunks. These chunks
    # would soon be sent a second time.
    resending.resend(draft, events)
    # Chunks are cut after all events, because each event may add to the reserve or free room. They are cut before
    # `complete`, because a package ends only if nothing is left to cut.
    open_ranges.refill(draft.head, policy)
    open_ranges.choose_queues(draft.head, policy)
    life.complete(draft)
    quota.ask(draft)
    life.drop_little(draft)
    if draft.results:
        draft.head.page = draft.head.version
    return Folded(draft.head, draft.results)


def _take(draft: Draft, event: Event) -> None:
    """Apply an event that a worker, a client or the queue caused. `_take_answer` applies all other events."""
    match event:
        case Published():
            _publish(draft, event)
        case GaveBack(ranges=numbers, unfit=unfit, closed=closed):
            tasks.give_back(draft, event)
            life.set_aside(draft, unfit)
            # No worker runs these tasks. If an ended package waited for their time, it would be settled later than
            # necessary.
            cancellation.stopped(draft.head, ranges.union([*numbers, closed] if closed else numbers))
        case Lost():
            tasks.lose(draft, event)
        case CancelAsked(ranges=None, only_queued=False):
            life.end(draft, "cancelled", event.reason, event.message)
        case CancelAsked():
            cancellation.cancel(draft, event)
        case Cleared():
            cancellation.clear(draft.head, event)
        case Acknowledged():
            life.end(draft, "cancelled", "acknowledged", "acknowledged by its client while it ran")
            life.acknowledge(draft)
        case _:
            _take_answer(draft, event)


def _take_answer(draft: Draft, event: Event) -> None:
    """Apply the answer to an effect, or a fact that a master found out."""
    head = draft.head
    match event:
        case ExecutorsIdle(executors=executors):
            pace.widen(draft, executors)
        case QuotaGranted():
            quota.receive(draft, event)
        case Sent(chunks=chunks):
            open_ranges.mark_sent(head, chunks)
        case Settled(charged_us=charged_us):
            head.life.settled = True
            head.quota.reserved_us = charged_us
            head.tasks.stopping = []
        case Deleted():
            head.life.deleted_at = head.life.deleted_at or head.now
        case Broken(message=message, results=results):
            life.end(draft, "failed", "broken", message)
            if results:
                life.lose_results(draft, message)
        case Stranded(message=message):
            life.strand(draft, message)
        case Placed():
            head.life.stranded_at, head.life.run_anyway = None, False
        case _:
            raise AssertionError(event)


def _publish(draft: Draft, event: Published) -> None:
    head = draft.head
    if event.refused is not None:
        life.end(draft, "failed", event.refused, event.message or f"a worker refused it: {event.refused}")
    elif event.results:
        # A worker runs the package, even if no master has seen this worker in the registry.
        head.life.stranded_at = None
    results = sorted(event.results, key=lambda result: result.index)
    accepted = tasks.commit(draft, [each for each in results if each.outcome != "cancelled"], event.generation)
    # A worker stops tasks that it believes are not wanted. A task that the head still wants is queued again.
    stopped = {result.index for result in results if result.outcome == "cancelled"}
    tasks.take_back(draft, ranges.of(sorted(stopped)), event.generation)
    tasks.close(draft, event.closed, event.generation)
    cancellation.charge_stopped(head, event, results)
    life.count_uploads(head, results)
    pace.measure(draft, event, accepted)
