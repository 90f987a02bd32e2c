"""The one idea that carries the rest: a package is a state machine, and this is its transition.

    fold(head, events, now) -> (head', results)

Everything that happens to a package is an event; the fold takes some of them and makes the next head, with the results
that this head commits. What is then left to do in the outside world is read off the head (effects.pending). It is
pure, so it may be tested, simulated and, after a lost race, simply done again.
"""

from collections.abc import Sequence
from typing import NamedTuple

from cloudpar_protocol.payloads import Range, TaskResult

from . import planning, quota, ranges
from .events import (
    Acknowledged,
    Broken,
    CancelAsked,
    Cleared,
    Deleted,
    Event,
    ExecutorsIdle,
    GaveBack,
    Lost,
    Published,
    QuotaGranted,
    Sent,
    Settled,
)
from .head import CANCELLED_RANGES, FAILED_RANGES, FLEET, Head, Member, Piece, State
from .policy import Policy

MEASURED_TASKS = 256
"""The mean forgets tasks older than about this many."""


class Folded(NamedTuple):
    """The next head, and the results that it commits."""

    head: Head
    results: list[TaskResult]


def fold(head: Head, events: Sequence[Event], now: float, policy: Policy, nonce: str) -> Folded:
    """Take events into a head.

    Args:
        head: The current state; not changed.
        events: Oldest first. A batch's losses are taken last, since a result may have come in the meantime.
        now: Seconds of any clock that the masters share roughly; a head's time never goes back.
        policy: Figures of the deployment.
        nonce: Names the result page that goes with the new head.
    """
    machine = _Machine(head.draft(), policy, max(now, head.now))
    for event in sorted(events, key=lambda event: isinstance(event, Lost)):
        machine.take(event)
    machine.pass_time()
    machine.cut()
    machine.conclude()
    if machine.results:
        machine.head.page = (machine.head.version, nonce)
    return Folded(machine.head, machine.results)


class _Machine:
    """One fold under way: a head of our own, and the results committed so far."""

    def __init__(self, head: Head, policy: Policy, now: float) -> None:
        self.head = head
        self.policy = policy
        self.results: list[TaskResult] = []
        head.version += 1
        head.now = now

    def take(self, event: Event) -> None:
        match event:
            case Published():
                self.publish(event)
            case GaveBack(generation=generation, ranges=given):
                for piece in self.remove(union_of(given), generation):
                    self.recut(piece.start, piece.end)
            case Lost():
                self.lose(event)
            case CancelAsked(ranges=None, only_queued=False):
                self.end("cancelled", event.reason, event.message)
            case CancelAsked():
                self.cancel_some(event)
            case Cleared(generation=generation, ranges=cleared):
                gone = [(piece.start, piece.end) for piece in self.remove(union_of(cleared), generation)]
                self.count_cancelled(gone)
            case Acknowledged():
                self.end("cancelled", "acknowledged", "acknowledged by its client while it ran")
                self.head.acknowledged_at = self.head.acknowledged_at or self.head.now
            case _:
                self.take_answer(event)

    def take_answer(self, event: Event) -> None:
        """What the outside world said to an effect, or found out about the queue."""
        match event:
            case ExecutorsIdle(executors=executors):
                room = min(len(self.head.open) + executors, self.policy.largest_window)
                self.head.window = max(self.head.window, room)
            case QuotaGranted():
                self.reserve(event)
            case Sent(chunks=chunks):
                sent = set(chunks)
                self.head.outbox = [c for c in self.head.outbox if (c.start, c.generation) not in sent]
            case Settled(charged_us=charged_us):
                self.head.settled = True
                self.head.reserved_us = charged_us
            case Deleted():
                self.head.deleted_at = self.head.deleted_at or self.head.now
            case Broken(message=message):
                self.end("failed", "broken", message)
            case _:
                raise AssertionError(event)

    # results

    def publish(self, event: Published) -> None:
        head = self.head
        if event.refused is not None:
            self.end("failed", event.refused, event.message or f"a worker refused it: {event.refused}")
        results = sorted(event.results, key=lambda result: result.index)
        accepted = self.commit([] if head.ended else results)
        self.charge_stopped(results)
        head.execute_us += sum(result.duration_us for result in accepted)
        head.retrieve_us += event.retrieve_us if accepted else 0
        head.publish_us += event.publish_us if accepted else 0
        self.measure(accepted)
        self.count_member(event.worker_id, event.executors)
        if accepted and event.generation >= head.window_since:
            window = planning.next_window(head.window, event.wait_us, head.executors, self.policy)
            if window != head.window:
                head.window, head.window_since = window, head.version

    def commit(self, results: Sequence[TaskResult]) -> list[TaskResult]:
        """Commit the results of tasks that have none yet; the first one wins."""
        head, accepted, at, last = self.head, [], 0, -1
        for result in results:
            while at < len(head.open) and head.open[at].end <= result.index:
                at += 1
            if at == len(head.open):
                break
            if head.open[at].start <= result.index != last:
                accepted.append(result)
                last = result.index
        if not accepted:
            return []
        self.remove(ranges.of(result.index for result in accepted))
        head.done += len(accepted)
        head.used_us += sum(result.duration_us for result in accepted)
        wrong = ranges.of(result.index for result in accepted if result.outcome != "ok")
        if wrong:
            head.errors += ranges.size(wrong)
            head.failed = ranges.union(head.failed, wrong)[:FAILED_RANGES]
        self.results += accepted
        return accepted

    def charge_stopped(self, results: Sequence[TaskResult]) -> None:
        """Tasks that were stopped without a result have used time all the same; each is charged once."""
        stopped = [result for result in results if ranges.contains(self.head.stopping, result.index)]
        if stopped:
            once = {result.index: result.duration_us for result in stopped}
            self.head.used_us += sum(once.values())
            self.head.stopping = ranges.subtract(self.head.stopping, ranges.of(sorted(once)))

    def measure(self, accepted: Sequence[TaskResult]) -> None:
        head, timed = self.head, [result.duration_us for result in accepted if result.outcome in {"ok", "error"}]
        if timed:
            weight = min(head.measured, max(0, MEASURED_TASKS - len(timed)))
            head.mean_us = (head.mean_us * weight + sum(timed)) / (weight + len(timed))
            head.measured += len(timed)

    def count_member(self, worker_id: str, executors: int) -> None:
        head = self.head
        since = head.now - self.policy.fleet_memory_s
        head.fleet = {name: member for name, member in head.fleet.items() if member.seen_at >= since}
        if worker_id in head.fleet or len(head.fleet) < FLEET:
            head.fleet[worker_id] = Member(executors, head.now)

    # outstanding tasks

    def remove(self, numbers: Sequence[Range], generation: int | None = None) -> list[Piece]:
        """Take tasks (of one generation, if given) out of the outstanding pieces; returns what was taken."""
        kept: list[Piece] = []
        taken: list[Piece] = []
        for piece in self.head.open:
            whole = [(piece.start, piece.end)]
            hit = ranges.intersect(whole, numbers) if generation in {None, piece.generation} else []
            if not hit:
                kept.append(piece)
                continue
            taken += [Piece(start, end, piece.generation) for start, end in hit]
            kept += [Piece(start, end, piece.generation) for start, end in ranges.subtract(whole, hit)]
        self.head.open = kept
        return taken

    def recut(self, start: int, end: int) -> None:
        """Queue tasks again as a new generation, in chunks of today's size."""
        while start < end and not self.head.ended:
            size = self.size(end - start)
            self.queue(start, start + size)
            start += size

    def queue(self, start: int, end: int) -> None:
        piece = Piece(start, end, self.head.version)
        self.head.outbox.append(piece)
        if self.head.open and self.head.open[-1].start > start:
            self.head.open.append(piece)
            self.head.open.sort(key=lambda open_piece: open_piece.start)
        else:
            self.head.open.append(piece)

    def size(self, uncut: int) -> int:
        head = self.head
        if head.chunksize is not None:
            return min(head.chunksize, uncut)
        return planning.chunk_size(uncut, head.tasks, head.mean_us, head.executors, self.policy)

    def lose(self, event: Lost) -> None:
        """Halve what was lost, so that a task that kills its workers is soon alone; alone, it fails."""
        for piece in self.remove([(event.start, event.end)], event.generation):
            middle = (piece.start + piece.end + 1) // 2
            if piece.end - piece.start > 1 and not self.head.ended:
                self.queue(piece.start, middle)
                self.queue(middle, piece.end)
            else:
                self.head.open.append(piece)
                self.head.open.sort(key=lambda open_piece: open_piece.start)
                text = f"its worker was lost {event.receives} times while it had this task"
                self.commit([TaskResult(piece.start, "lost", 0, message=text)])

    def cut(self) -> None:
        """Refill the window from the uncut tasks."""
        head = self.head
        if head.done == head.tasks:
            head.cursor = head.tasks
        if head.draining and not head.ended and head.cursor < head.tasks:
            self.count_cancelled(ranges.subtract([(head.cursor, head.tasks)], head.cancelled))
            head.cursor = head.tasks
        while head.uncut and len(head.open) < head.window and head.used_us < head.reserved_us:
            free = ranges.subtract([(head.cursor, head.tasks)], head.cancelled)
            if not free:
                head.cursor = head.tasks
                return
            start, end = free[0]
            end = start + self.size(min(end - start, head.uncut))
            self.queue(start, end)
            head.cursor = end

    # cancellation, quota, end

    def cancel_some(self, event: CancelAsked) -> None:
        head = self.head
        if head.ended:
            return
        if event.only_queued:
            head.draining = True
            return
        asked = ranges.intersect(union_of(event.ranges or []), [(0, head.tasks)])
        running = [(piece.start, piece.end) for piece in self.remove(asked)]
        queued = ranges.subtract(ranges.intersect(asked, [(head.cursor, head.tasks)]), head.cancelled)
        head.stopping = ranges.union(head.stopping, running)
        head.settle_at = head.now + 2 * self.policy.lease_s
        self.count_cancelled(running + queued)

    def count_cancelled(self, numbers: Sequence[Range]) -> None:
        self.head.cancelled = ranges.union(self.head.cancelled, numbers)
        self.head.done += ranges.size(numbers)
        if len(self.head.cancelled) > CANCELLED_RANGES:
            text = f"tasks in more than {CANCELLED_RANGES} places were cancelled one by one: cancel the package instead"
            self.end("cancelled", "cancelled", text)

    def reserve(self, event: QuotaGranted) -> None:
        head = self.head
        if event.slice != head.slice or not head.slice_us:
            return
        head.reserved_us += event.granted_us
        head.slice += 1
        head.slice_us = 0
        head.wall = event.granted_us == 0 and event.exhausted
        if head.wall and head.used_us >= head.reserved_us:
            text = "the account's compute time is used up: ask the operator to grant more (cloudpar account grant)"
            self.end("failed", "quota", text)
        elif event.granted_us == 0 and not event.exhausted:
            head.slice_at = head.now + 1.0

    def end(self, state: State, reason: str | None = None, message: str | None = None) -> None:
        """The package has ended. What still runs is stopped by its workers, and may still be charged."""
        head = self.head
        if head.ended:
            return
        head.state, head.reason, head.message, head.ended_at = state, reason, message, head.now
        if reason != "quota":
            head.stopping = ranges.union(head.stopping, [(piece.start, piece.end) for piece in head.open])
        else:
            head.stopping = []
        head.open, head.outbox, head.slice_us = [], [], 0
        head.settle_at = head.now + 2 * self.policy.lease_s

    def pass_time(self) -> None:
        head, policy = self.head, self.policy
        if not head.ended and head.now >= head.started_at + policy.lifetime_s:
            days = policy.lifetime_s / 86400
            self.end("failed", "expired", f"it still ran after {days:g} days, the most that a package may")
        retained_until = (head.ended_at or head.now) + policy.retention_s
        if head.settled and head.acknowledged_at is None and head.deleted_at is None and head.now >= retained_until:
            days = policy.retention_s / 86400
            head.message = f"nobody acknowledged it for {days:g} days after it ended ({head.client_state})"
            head.state, head.reason = "expired", "expired"

    def conclude(self) -> None:
        head = self.head
        if not head.ended and head.cursor == head.tasks and not head.open and head.used_us <= head.reserved_us:
            self.end("completed")
        if not head.slice_us:
            head.slice_us = quota.slice_wanted_us(head, self.policy)


def union_of(numbers: Sequence[Range]) -> list[Range]:
    """Ranges from outside may overlap."""
    return ranges.union(numbers)
