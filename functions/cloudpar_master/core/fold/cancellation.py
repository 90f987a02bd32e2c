"""Cancels some tasks of a package, and charges the time for which unwanted tasks have run."""

from collections.abc import Sequence

from cloudpar_master.core import quota
from cloudpar_master.core.events import CancelAsked, Cleared, Published
from cloudpar_master.core.head import Head
from cloudpar_protocol import ranges
from cloudpar_protocol.payloads import Range, TaskResult

from . import open_ranges
from .draft import Draft


def cancel(draft: Draft, event: CancelAsked) -> None:
    """Cancel some tasks, or mark the package as draining, so that all tasks that no worker has are cancelled.

    A task that has a result keeps it. If the head has no room for the cancelled ranges, or the package has ended, no
    task is cancelled.
    """
    head, tasks = draft.head, draft.head.tasks
    if head.life.ended:
        return
    if event.only_queued:
        tasks.draining = True
        return
    asked = ranges.union(event.ranges or [])
    out = open_ranges.extract(head, asked)
    queued = ranges.subtract(ranges.intersect(asked, [(tasks.cursor, tasks.count)]), tasks.cancelled)
    # Each range that is taken out of the open ranges becomes two entries: a cancelled range and a stopping range.
    more = len(out.kept) - len(out.among) + 2 * len(out.taken) + len(queued)
    if more > tasks.free_entries:
        return  # a client could not use a partial cancellation; the reply is an error: the tasks are too scattered
    out.keep(head)
    at_workers = [(each.start, each.end) for each in out.taken]
    if at_workers:
        tasks.stopping = ranges.union(tasks.stopping, at_workers)
        # A worker learns of the cancellation from the reply to its next publication or beat, and stops the tasks. If
        # the package were settled before the worker can report their time, that time would not be charged.
        head.life.settle_at = head.now + 2 * draft.policy.lease_s
    _count(head, at_workers + queued)


def clear(head: Head, event: Cleared) -> None:
    """Cancel the tasks of a chunk that was in the queue and that no worker has had.

    An ended package has no open ranges. But it may wait for the times of tasks that were open at its end (`stopping`).
    The chunk's tasks are taken out of `stopping`, because no worker will report a time for them.
    """
    taken = open_ranges.take(head, event.ranges, event.generation, only=True, comes_back=True)
    _count(head, [(each.start, each.end) for each in taken])
    never_ran = ranges.intersect(event.ranges, head.tasks.stopping)
    stopped(head, event.ranges)
    if head.life.state == "cancelled":
        # Without this record, the reply to a client that cancels the package would not name these tasks.
        more = ranges.subtract(never_ran, head.tasks.cancelled)
        _count(head, more if len(more) <= head.tasks.free_entries else [])


def drain(draft: Draft) -> None:
    """Cancel the uncut tasks of a draining package. If all tasks are done, move the cursor to the end."""
    head, tasks = draft.head, draft.head.tasks
    if tasks.draining and not head.life.ended:
        _count(head, ranges.subtract([(tasks.cursor, tasks.count)], tasks.cancelled))
        tasks.cursor = tasks.count
    if tasks.done == tasks.count:
        tasks.cursor = tasks.count


def charge_stopped(head: Head, event: Published, results: Sequence[TaskResult]) -> None:
    """Charge the time of unwanted tasks (`stopping`) that a publication reports, once for each task.

    If the publication closes its lease, the package waits for no more times of this chunk. The results are in the order
    of their tasks.
    """
    stopping = head.tasks.stopping
    # A task leaves `stopping` when it is charged, so a repeated publication finds nothing to charge. If a publication
    # names a task twice, the dictionary keeps one of the times.
    once = {each.index: each.duration_us for each in results if ranges.contains(stopping, each.index)}
    head.quota.used_us = quota.add_us(head.quota.used_us, sum(once.values()))
    stopped(head, ranges.of(once))
    if event.closed is not None:
        stopped(head, [event.closed])


def stopped(head: Head, numbers: Sequence[Range]) -> None:
    """Take tasks that do not run any more out of `stopping`, so that the package need not wait for their times.

    Taking tasks out of the middle of a range leaves two ranges. If the head has no room for more ranges, the last
    ranges are dropped, and the time of their tasks is not charged.
    """
    tasks = head.tasks
    left = ranges.subtract(tasks.stopping, numbers)
    tasks.stopping = left[: len(tasks.stopping) + max(tasks.free_entries, 0)]


def _count(head: Head, numbers: Sequence[Range]) -> None:
    head.tasks.cancelled = ranges.union(head.tasks.cancelled, numbers)
    head.tasks.done += ranges.size(numbers)
