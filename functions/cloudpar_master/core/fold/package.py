"""The one idea that carries the rest: a package is a state machine, and this is its transition.

    fold(head, events, now) -> (head', results)

Everything that happens to a package is an event; the fold takes some of them and makes the next head, with the results
that this head commits. What is then left to do in the outside world is read off the head (effects.pending). It is
pure, so it may be tested, simulated and, after a lost race, simply done again.
"""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from cloudpar_master.core import planning, quota, ranges
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
from cloudpar_master.core.head import (
    BLOB_BYTES,
    FAILED_RANGES,
    FLEET,
    HOST_BYTES,
    LACKS_BYTES,
    MESSAGE_BYTES,
    SET_ASIDE,
    Head,
    Member,
    State,
    cut,
    number_of,
)
from cloudpar_master.core.policy import Policy
from cloudpar_protocol.payloads import Range, TaskResult, Unfit

from . import outstanding

MEASURED_TASKS = 256
"""The mean forgets tasks older than about this many."""

ASK_AGAIN_S = 1.0
"""While other packages of the account hold all that is left, a slice is asked for this often."""


class Folded(NamedTuple):
    """The next head, and the results that it commits."""

    head: Head
    results: list[TaskResult]


def fold(head: Head, events: Sequence[Event], now: float, policy: Policy) -> Folded:
    """Take events into a head.

    Args:
        head: The current state; not changed.
        events: Oldest first. A batch's losses are taken last, since a result may have come in the meantime.
        now: Seconds of any clock that the masters share roughly; a head's time never goes back.
        policy: Figures of the deployment.
    """
    machine = _Machine(head.draft(), policy, max(now, head.now))
    for event in sorted(events, key=lambda event: isinstance(event, Lost)):
        machine.take(event)
    machine.pass_time()
    machine.drain()
    outstanding.cut(machine.head, policy)
    machine.conclude()
    if machine.results:
        machine.head.page = machine.head.version
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
            case GaveBack():
                self.give_back(event)
            case Lost():
                self.lose(event)
            case CancelAsked(ranges=None, only_queued=False):
                self.end("cancelled", event.reason, event.message)
            case CancelAsked():
                self.cancel_some(event)
            case Cleared(generation=generation, ranges=cleared):
                gone = outstanding.take(self.head, ranges.union(cleared), generation, only=True, comes_back=True)
                self.count_cancelled([(piece.start, piece.end) for piece in gone])
                self.stopped(ranges.union(cleared))
            case Acknowledged():
                self.end("cancelled", "acknowledged", "acknowledged by its client while it ran")
                self.head.acknowledged_at = self.head.acknowledged_at or self.head.now
            case _:
                self.take_answer(event)

    def take_answer(self, event: Event) -> None:
        """What the outside world said to an effect, or found out about the queue."""
        match event:
            case ExecutorsIdle(executors=executors):
                first = planning.first_window(self.head.tasks, self.policy)
                wished = max(len(self.head.open) + executors, first)
                self.head.window = max(self.head.window, min(wished, self.policy.largest_window))
            case QuotaGranted():
                self.reserve(event)
            case Sent(chunks=chunks):
                self.mark_sent(chunks)
            case Settled(charged_us=charged_us):
                self.head.settled = True
                self.head.reserved_us = charged_us
                self.head.stopping = []
            case Deleted():
                self.head.deleted_at = self.head.deleted_at or self.head.now
            case Broken(message=message):
                self.end("failed", "broken", message)
            case Stranded(message=message):
                self.strand(message)
            case Placed():
                self.head.stranded_at, self.head.anyhow = None, False
            case _:
                raise AssertionError(event)

    def mark_sent(self, chunks: Sequence[tuple[int, int, int]]) -> None:
        sent: dict[int, list[Range]] = {}
        for start, end, generation in sorted(chunks):
            sent.setdefault(generation, []).append((start, end))
        for at, piece in enumerate(self.head.open):
            if not piece.sent and ranges.contains(sent.get(piece.generation, ()), piece.start):
                self.head.open[at] = replace(piece, sent=True)

    # results

    def publish(self, event: Published) -> None:
        head = self.head
        if event.refused is not None:
            self.end("failed", event.refused, event.message or f"a worker refused it: {event.refused}")
        elif event.results:
            head.stranded_at = None  # a worker runs it, whether or not anybody has asked the registry since
        results = sorted(event.results, key=lambda result: result.index)
        accepted = self.commit([result for result in results if result.outcome != "cancelled"], event.generation)
        # A worker stops what it thinks is not wanted. If it is wrong, the task is not cancelled but given back.
        stopped = {result.index for result in results if result.outcome == "cancelled"}
        self.take_back(ranges.of(sorted(stopped)), event.generation)
        self.charge_stopped(event, results)
        uploaded = [result.blob.size for result in results if result.blob is not None]
        head.stored_bytes += sum(uploaded) + BLOB_BYTES * len(uploaded)  # wanted or not, they are there
        head.execute_us = quota.add_us(head.execute_us, sum(result.duration_us for result in accepted))
        head.retrieve_us = quota.add_us(head.retrieve_us, event.retrieve_us if accepted else 0)
        head.publish_us = quota.add_us(head.publish_us, event.publish_us if accepted else 0)
        self.count_member(event.worker_id, event.executors)
        self.measure(accepted)
        if accepted and event.generation >= head.window_since:
            window = planning.next_window(head.window, event.wait_us, head.executors, self.policy)
            if window != head.window:
                head.window, head.window_since = window, head.version

    def commit(self, results: Sequence[TaskResult], generation: int) -> list[TaskResult]:
        """Commit the results of tasks that have none yet; the first one wins. `results` come in order."""
        head, accepted, at, last = self.head, [], 0, -1
        for result in results:
            while at < len(head.open) and head.open[at].end <= result.index:
                at += 1
            if at == len(head.open):
                break
            if head.open[at].start <= result.index != last:
                accepted.append(result)
                last = result.index
        if not outstanding.take(head, ranges.of(result.index for result in accepted), generation):
            return []
        head.done += len(accepted)
        head.used_us = quota.add_us(head.used_us, sum(result.duration_us for result in accepted))
        wrong = ranges.of(result.index for result in accepted if result.outcome != "ok")
        if wrong:
            head.errors += ranges.size(wrong)
            head.failed = ranges.union(head.failed, wrong)[:FAILED_RANGES]
        head.stored_bytes += sum(map(_inline_bytes, accepted))
        self.results += accepted
        return accepted

    def charge_stopped(self, event: Published, results: Sequence[TaskResult]) -> None:
        """Tasks that were stopped without a result have used time all the same; each is charged once."""
        head = self.head
        once = {r.index: r.duration_us for r in results if ranges.contains(head.stopping, r.index)}
        if once:
            head.used_us = quota.add_us(head.used_us, sum(once.values()))
            self.stopped(ranges.of(sorted(once)))
        if event.closed is not None:
            self.stopped([event.closed])

    def stopped(self, numbers: Sequence[Range]) -> None:
        """These do not run any more. What there is no room for is not charged any more."""
        head = self.head
        left = ranges.subtract(head.stopping, numbers)
        head.stopping = left[: len(head.stopping) + max(head.room, 0)]

    def measure(self, accepted: Sequence[TaskResult]) -> None:
        head, timed = self.head, [result.duration_us for result in accepted if result.outcome in {"ok", "error"}]
        if timed:
            weight = min(head.measured, max(0, MEASURED_TASKS - len(timed)))
            total_us = quota.add_us(sum(timed), 0)
            head.mean_us = (head.mean_us * weight + total_us) / (weight + len(timed))
            head.measured += len(timed)

    def count_member(self, worker_id: str, executors: int) -> None:
        head = self.head
        since = head.now - self.policy.fleet_memory_s
        head.fleet = {number: member for number, member in head.fleet.items() if member.seen_at >= since}
        number = number_of(worker_id)
        if number in head.fleet or len(head.fleet) < FLEET:
            head.fleet[number] = Member(executors, head.now)

    # placement

    def give_back(self, event: GaveBack) -> None:
        """A worker runs nothing of these tasks, or, if it cannot, nothing of the whole package."""
        head, numbers = self.head, ranges.union(event.ranges)
        taken = self.take_back(numbers, event.generation, event.losses)
        if taken and event.used_us:  # only with the first copy of the event: then its tasks are outstanding
            head.used_us = quota.add_us(head.used_us, event.used_us)
        self.stopped(numbers)  # of a package that has ended, too: no worker runs these, so their time never comes
        if event.unfit is not None and len(head.set_aside) < SET_ASIDE:
            unfit = Unfit(cut(event.unfit.host, HOST_BYTES), cut(event.unfit.lacks, LACKS_BYTES))
            if unfit not in head.set_aside:
                head.set_aside.append(unfit)

    def strand(self, message: str | None) -> None:
        """No live worker can run this package. A worker with the right Python may come, so that is waited for."""
        head = self.head
        if message is None:
            head.anyhow = True
            return
        head.stranded_at = head.now if head.stranded_at is None else head.stranded_at
        if head.now >= head.stranded_at + self.policy.grace_s:
            self.end("failed", "python", message)

    # outstanding tasks

    def take_back(self, numbers: Sequence[Range], generation: int, losses: int = 0) -> bool:
        """A worker will not run these tasks: others shall. Says whether any of them was outstanding."""
        pieces = outstanding.take(self.head, numbers, generation, only=True, comes_back=True)
        outstanding.recut(self.head, pieces, self.policy, losses)
        return bool(pieces)

    def lose(self, event: Lost) -> None:
        """Halve what was lost, so that a task that kills its workers is soon alone; alone, it fails."""
        whole = [(event.start, event.end)]
        lost = outstanding.extract(self.head, whole, event.generation, only=True).touched
        text = (
            f"its worker was lost {event.receives} times while it had this task: it brings its worker down (give it "
            "more memory), or outlasts what spot instances live (split it)"
        )
        alone = [piece.start for piece in lost if piece.end - piece.start == 1]
        self.commit([TaskResult(index, "lost", 0, message=text) for index in alone], event.generation)
        for piece in lost:
            if piece.end - piece.start > 1:
                outstanding.halve(self.head, piece)

    def drain(self) -> None:
        """Of a draining package nothing more is cut; and what is done needs no cutting."""
        head = self.head
        if head.draining and not head.ended:
            self.count_cancelled(ranges.subtract([(head.cursor, head.tasks)], head.cancelled))
            head.cursor = head.tasks
        if head.done == head.tasks:
            head.cursor = head.tasks

    # cancellation, quota, end

    def cancel_some(self, event: CancelAsked) -> None:
        head = self.head
        if head.ended:
            return
        if event.only_queued:
            head.draining = True
            return
        asked = ranges.intersect(ranges.union(event.ranges or []), [(0, head.tasks)])
        out = outstanding.extract(head, asked)
        queued = ranges.subtract(ranges.intersect(asked, [(head.cursor, head.tasks)]), head.cancelled)
        more = len(out.kept) - len(head.open) + 2 * len(out.taken) + len(queued)
        if more > max(head.room, 0):
            return  # too scattered: the answer says that nothing was cancelled
        head.open = out.kept
        stopped = [(piece.start, piece.end) for piece in out.taken]
        if stopped:
            head.stopping = ranges.union(head.stopping, stopped)
            head.settle_at = head.now + 2 * self.policy.lease_s
        self.count_cancelled(stopped + queued)

    def count_cancelled(self, numbers: Sequence[Range]) -> None:
        self.head.cancelled = ranges.union(self.head.cancelled, numbers)
        self.head.done += ranges.size(numbers)

    def reserve(self, event: QuotaGranted) -> None:
        head = self.head
        if head.ended or event.slice != head.slice or not (event.granted_us or head.slice_us):
            return
        head.slice_us = 0
        head.wall = event.granted_us == 0 and event.exhausted
        if event.granted_us:
            head.reserved_us += event.granted_us
            head.slice += 1
        elif not event.exhausted:
            head.slice_at = head.now + ASK_AGAIN_S
        elif head.dry:
            text = "the account's compute time is used up: ask the operator to grant more (cloudpar account grant)"
            self.end("failed", "quota", text)

    def end(self, state: State, reason: str | None = None, message: str | None = None) -> None:
        """The package has ended. What still runs is stopped by its workers, and may still be charged."""
        head = self.head
        if head.ended:
            return
        head.state, head.reason, head.ended_at = state, reason, head.now
        head.message = None if message is None else cut(message, MESSAGE_BYTES)
        if reason != "quota":
            head.stopping = ranges.union(head.stopping, [(piece.start, piece.end) for piece in head.open])
        else:
            head.stopping = []
        head.open, head.slice_us = [], 0
        head.settle_at = head.now + 2 * self.policy.lease_s

    def pass_time(self) -> None:
        head, policy = self.head, self.policy
        if not head.ended and head.done < head.tasks and head.now >= head.started_at + policy.lifetime_s:
            days = policy.lifetime_s / 86400
            self.end("failed", "expired", f"it still ran after {days:g} days, the most that a package may")
        if not head.ended and head.stopping and head.now >= (head.settle_at or 0.0):
            head.stopping = []
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
        if head.unneeded and head.stored_bytes < self.policy.kept_bytes:
            head.deleted_at = head.deleted_at or head.now


def _inline_bytes(result: TaskResult) -> int:
    texts = (result.data, result.message, result.traceback, result.stdout, result.stderr, result.input)
    return 20 + sum(len(text) for text in texts if text)
