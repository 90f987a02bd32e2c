"""Learns the speed of tasks from publications, and decides how many chunks may be open."""

from collections.abc import Sequence

from cloudpar_master.core import planning, quota
from cloudpar_master.core.events import Published
from cloudpar_master.core.head import FLEET, Member, number_of
from cloudpar_protocol.payloads import TaskResult

from .draft import Draft

MEASURED_TASKS = 256
"""The mean duration is computed from about this many of the last tasks. Older tasks count less and less, so that the
mean follows a map whose tasks become longer or shorter."""


def measure(draft: Draft, event: Published, accepted: Sequence[TaskResult]) -> None:
    """Add the request times and the durations of a publication, and adapt the window to its chunk's wait.

    No result of a repeated publication is accepted, so such a publication adds no times and does not change the window.
    """
    pace = draft.head.pace
    pace.execute_us = quota.add_us(pace.execute_us, sum(result.duration_us for result in accepted))
    pace.retrieve_us = quota.add_us(pace.retrieve_us, event.retrieve_us if accepted else 0)
    pace.publish_us = quota.add_us(pace.publish_us, event.publish_us if accepted else 0)
    _count_member(draft, event.worker_id, event.executors)
    _average(draft, accepted)
    if accepted and event.generation >= pace.window_since:
        places = planning.places_of(pace, draft.policy)
        window = planning.next_window(pace.window, event.wait_us, places, draft.policy, pace.most_executors)
        if window != pace.window:
            pace.window, pace.window_since = window, draft.head.version


def widen(draft: Draft, executors: int) -> None:
    """Widen the window, up to `largest_window`, so that there are enough chunks for executors that got none.

    The window of a package that is closed, or whose durations are unknown, becomes at least as large as that of a new
    package.
    """
    tasks, pace, policy = draft.head.tasks, draft.head.pace, draft.policy
    # Count an executor for each open range, because most open ranges keep an executor busy. If executors were counted
    # only when their worker publishes, a large fleet would wait for the end of the first tasks, which may last hours.
    at_work = len(tasks.open) + executors
    pace.most_executors = max(pace.most_executors, at_work)
    wished = len(tasks.open) + -(-executors // planning.crew_of(pace, policy))
    if not (policy.shares_chunks and pace.measured):
        # The window of a new package is for chunks of unknown duration. Where a measured chunk is for all executors of
        # a worker, this window would be several times what the workers need, and `chunk_size` would therefore make the
        # next chunks shorter.
        wished = max(wished, planning.unmeasured_window(tasks.count, policy))
    pace.window = max(pace.window, min(wished, planning.largest_window(pace.most_executors, policy)))


def _average(draft: Draft, accepted: Sequence[TaskResult]) -> None:
    # Only tasks that ran to their end count: the time of a task that timed out or crashed does not show how long other
    # tasks take.
    pace, timed = draft.head.pace, [each.duration_us for each in accepted if each.outcome in {"ok", "error"}]
    if timed:
        weight = min(pace.measured, max(0, MEASURED_TASKS - len(timed)))
        total_us = quota.add_us(sum(timed), 0)
        pace.mean_us = (pace.mean_us * weight + total_us) / (weight + len(timed))
        pace.measured += len(timed)


def _count_member(draft: Draft, worker_id: str, executors: int) -> None:
    pace, now = draft.head.pace, draft.head.now
    number, member = number_of(worker_id), Member(executors, now)
    if pace.fleet.get(number) == member:
        return  # an event of the same request was folded before
    since = now - draft.policy.fleet_memory_s
    pace.fleet = {number: member for number, member in pace.fleet.items() if member.seen_at >= since}
    # The fleet is bounded: a worker can publish under any number of ids, and each id would add to the size of the head.
    if number in pace.fleet or len(pace.fleet) < FLEET:
        pace.fleet[number] = member
        pace.pauses = pace.pauses or len(pace.fleet) >= draft.policy.many_workers
        pace.most_executors = max(pace.most_executors, pace.executors)
