"""Commits the results of tasks, and queues the tasks again that workers return without a result."""

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter

from msgspec.structs import replace

from cloudpar_master.core import quota
from cloudpar_master.core.events import GaveBack, Lost
from cloudpar_master.core.head import FAILED_RANGES, GIVEN_BACK
from cloudpar_protocol import ranges
from cloudpar_protocol.payloads import Range, TaskResult

from . import open_ranges
from .draft import Draft


def commit(draft: Draft, results: Sequence[TaskResult], generation: int) -> list[TaskResult]:
    """Commit the results of open tasks. The first result of a task wins.

    Args:
        draft: What the fold changes.
        results: In the order of their tasks.
        generation: The generation of the chunk from which the results come.

    Returns:
        The results that were committed. None is committed if the head has no room for the ranges that would remain
        between the results. Then each open range that has one of these tasks is queued again as a whole.
    """
    if not results:
        return []
    head, tasks = draft.head, draft.head.tasks
    accepted: list[TaskResult] = []
    last: int | None = None
    at = bisect_right(tasks.open, results[0].index, key=attrgetter("end"))
    for result in results:
        while at < len(tasks.open) and tasks.open[at].end <= result.index:
            at += 1
        if at == len(tasks.open):
            break
        # A task outside the open ranges has its result, is cancelled, or was never handed out. Committing such a task's
        # result would charge the task twice, or let a worker invent results. `last` is compared, too, because one
        # publication may name a task twice.
        if tasks.open[at].start <= result.index != last:
            accepted.append(result)
            last = result.index
    # Results of any generation are committed: a worker that was wrongly taken for lost has done the work, too.
    if not open_ranges.take(head, ranges.of(result.index for result in accepted), generation):
        return []
    tasks.done += len(accepted)
    head.quota.used_us = quota.add_us(head.quota.used_us, sum(result.duration_us for result in accepted))
    wrong = ranges.of(result.index for result in accepted if result.outcome != "ok")
    tasks.errors += ranges.size(wrong)
    tasks.failed = ranges.union(tasks.failed, wrong)[:FAILED_RANGES]
    head.life.stored_bytes += sum(map(_inline_bytes, accepted))
    draft.results += accepted
    return accepted


def give_back(draft: Draft, event: GaveBack) -> None:
    """Cut the tasks that a worker gives back into new chunks, and charge the time that the worker reports.

    Only tasks that are open in the event's generation are cut. If the package does not want the tasks any more and
    waits for their time (`stopping`), the reported time is charged, too.
    """
    used, numbers = draft.head.quota, ranges.union(event.ranges)
    # Without this line, a user could compute for free: a cancelled task that then fails for lack of a module is
    # reported by a give-back, and its time would not be charged.
    awaited = ranges.intersect(draft.head.tasks.stopping, numbers)
    taken = take_back(draft, numbers, event.generation, event.losses)
    # When a second copy of the event comes, its tasks are no longer open in this generation. But they may be in
    # `stopping`, if they were cancelled after the first copy had queued them again. Without the number, their time
    # would then be charged twice.
    if (taken or awaited) and event.number not in used.given_back:
        used.used_us = quota.add_us(used.used_us, event.used_us)
        if event.used_us and event.number:
            used.given_back = [*used.given_back, event.number][-GIVEN_BACK:]
    close(draft, event.closed, event.generation, event.losses)


def take_back(
    draft: Draft, numbers: Sequence[Range], generation: int, losses: int = 0, *, unreported: bool = False
) -> bool:
    """Cut tasks that are open in this generation into new chunks, because a worker will not run them.

    A worker that was taken for lost may send a late give-back. The give-back must not take the tasks from the worker
    that has them now in another generation.

    Args:
        draft: What the fold changes.
        numbers: A sorted set of tasks.
        generation: The generation of the chunk from which the tasks come.
        losses: See GaveBack.
        unreported: Whether the worker has reported nothing about these tasks. That counts as one more loss.

    Returns:
        Whether any task was taken. If the head has no room for the ranges that would result, none is taken. Then each
        open range that has one of these tasks in this generation is queued again as a whole.
    """
    tasks = draft.head.tasks
    alone = {tasks.open[at].start for at in tasks.among(numbers) if tasks.open[at].end - tasks.open[at].start == 1}
    taken = open_ranges.take(draft.head, numbers, generation, only=True, comes_back=True)
    again = [replace(each, losses=each.losses + unreported) for each in taken]
    open_ranges.recut(draft.head, again, draft.policy, losses + unreported, alone)
    return bool(taken)


def close(draft: Draft, closed: Range | None, generation: int, losses: int = 0) -> None:
    """Queue again the tasks of a closed lease that have neither a result nor a give-back.

    If `closed` is None, no lease was closed.

    A worker closes a lease when it has sent everything, but a message may not have arrived: for example, a proxy has
    refused a publication, and the worker has dropped the publication.
    """
    if closed is not None:
        # The master deletes the queue message of a closed lease. Without this line, a task that is still open would
        # never be delivered again, and the package would wait for it until `lifetime_s` is over. Without the count of
        # losses, a task whose result is refused each time would run again and again.
        take_back(draft, [closed], generation, losses, unreported=True)


def lose(draft: Draft, event: Lost) -> None:
    """Halve the open ranges of a lost chunk, so that a task that kills its workers is soon alone in a chunk.

    A task that was alone in its chunk gets the result "lost". Without halving, the master would have to let all tasks
    of the chunk fail because of one task, or let this task kill workers for days.
    """
    whole = [(event.start, event.end)]
    lost = open_ranges.extract(draft.head, whole, event.generation, only=True).touched
    text = (
        f"its worker was lost {event.receives} times while it had this task, or could not send its result: it brings "
        "its worker down (give it more memory), outlasts what spot instances live (split it), or a proxy refuses its "
        "result (see the worker's log)"
    )
    if event.end - event.start == 1:
        commit(draft, [TaskResult(each.start, "lost", 0, message=text) for each in lost], event.generation)
        return
    for each in lost:
        open_ranges.halve(draft.head, each)


def _inline_bytes(result: TaskResult) -> int:
    texts = (result.data, result.message, result.traceback, result.stdout, result.stderr, result.input)
    return 20 + sum(len(text) for text in texts if text)
