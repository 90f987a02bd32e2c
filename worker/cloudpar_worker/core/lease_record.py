"""One lease at the worker: which of its tasks wait, run or have results, and which results the master has."""

from collections.abc import Iterable, Sequence
from typing import Literal

from cloudpar_protocol import ranges
from cloudpar_protocol.limits import INLINE_RESULT_BYTES
from cloudpar_protocol.payloads import BlobData, Range, TaskResult, Unfit
from cloudpar_protocol.seals import Seals
from cloudpar_protocol.worker_messages import Lease, LeaseRef, LeaseView, Return

from .executor_result import ExecutorResult

Reason = Literal["payload", "python", "seal"]
_RESULT_BYTES = 200
"""The approximate memory of a result without its data and texts, in bytes."""


class LeaseRecord:
    """The tasks of a lease. Each task is unfetched, ready, fed, pending, published, given back, or dropped.

    Attributes:
        lease: The lease as it came from the master.
        unfetched: Tasks whose payload has not been downloaded yet, in order.
        ready: Tasks that executors can get, in order.
        fed: The number of the lease's tasks that are in executors.
        wanted: The tasks that the master wanted in its last answer about the lease; None before the master's first
            answer.
        pending: Results that no publication contains yet.
        result_bytes: The approximate memory of all results that the master does not have yet.
        pending_at_us: The time at which the first pending result came.
        publishing: Whether a publication is under way.
        uploads_for: The account, if the publication under way uploads large results; otherwise None.
        returning: Whether a give-back is under way.
        downloading: Whether a download is under way.
        closing: Whether the last publication or give-back of the lease is under way. The record is dropped after it.
        undeliverable: Whether a download of the lease's payload failed, perhaps because the lease's links have expired.
            If so, the worker gives back the tasks that no executor has.
        first: Whether the lease has the first task of its package, and no executor has had a task of the lease yet.
        refusal: The reason for refusing the whole package, as the values of `refused` and `message` in a publication.
            None if this worker does not refuse the package.
        unfit: The name of this machine, and a text about the thing that this worker lacks for the package. None if it
            lacks nothing, or if it runs the package nevertheless because no other worker can.
        lost_us: The time used by tasks that failed because this worker lacks something; 0 after a give-back has
            reported the time.
        retrieve_us: The duration of the lease's retrieval and downloads; 0 after a publication has reported it.
        publish_us: The duration of earlier publications of the package, which the next publication of this lease
            reports; 0 if there is nothing to report.
        item_bytes: The approximate size of one task's data, if the data was in a blob; otherwise 0.
    """

    def __init__(self, lease: Lease, arrived_at_us: int, retrieve_us: int) -> None:
        self.lease = lease
        self.arrived_at_us = arrived_at_us
        self.retrieve_us = retrieve_us
        code = lease.code
        here = not (code.inline is None and code.reference is None) and not isinstance(lease.data, BlobData)
        self.unfetched: list[Range] = [] if here else list(lease.ranges)
        self.ready: list[Range] = list(lease.ranges) if here else []
        self.ready_tasks = ranges.size(self.ready)
        self.fed = 0
        self.first = lease.start == 0
        self.wanted: list[Range] | None = None
        self.pending: list[TaskResult] = []
        self.pending_bytes = self.result_bytes = 0
        self._pending_large = False
        self.uploads_for: str | None = None
        self.pending_at_us = 0
        self.publishing = self.returning = self.downloading = self.closing = False
        self.undeliverable = False
        self.refusal: tuple[Reason, str] | None = None
        self.unfit: Unfit | None = None
        self.lost_us = 0
        # The agent verifies the seals of a task's code and data before the task can start. So the agent never seals a
        # result of code or data that an attacker made.
        self._seals = Seals(lease.seal_key, lease.package_id) if lease.seal_key is not None else None
        self.publish_us = 0
        self.item_bytes = 0
        self._seq = 0
        self._segments: dict[Range, int] = {}
        self._publishing_us = self._sent = self._sent_bytes = 0

    @property
    def unpublished(self) -> int:
        """The number of the lease's results that the master does not have yet, as far as this worker knows."""
        return len(self.pending) + self._sent

    @property
    def uploads_next_for(self) -> str | None:
        """The account, if a pending result is too large to travel inside its publication; otherwise None."""
        return self.lease.account if self._pending_large else None

    @property
    def untouched(self) -> int:
        """The number of tasks that are not in an executor and have no result yet."""
        return self.ready_tasks + ranges.size(self.unfetched)

    @property
    def started(self) -> bool:
        """Whether executors have had tasks of the lease whose results the master does not have yet."""
        return bool(self.fed or self.unpublished or self.publishing)

    @property
    def exhausted(self) -> bool:
        """Whether no task of the lease waits or runs."""
        return not (self.ready or self.unfetched or self.fed)

    def next_seq(self) -> int:
        """Return the number of the next publication or give-back.

        By this number the master recognizes a repeated message.
        """
        self._seq += 1
        return self._seq - 1

    def refuse(self, reason: Reason, message: str) -> None:
        """Refuse the package: drop this lease's untouched tasks, and let the package fail with this message."""
        self.drop_untouched()
        self.refusal = reason, message

    def drop_untouched(self) -> None:
        """Drop all tasks that no executor has."""
        self.ready, self.unfetched, self.ready_tasks = [], [], 0

    def report_cost(self, unreported_us: dict[str, int]) -> None:
        """Let the next publication report the duration of earlier publications of the package."""
        self.publish_us = unreported_us.pop(self.lease.package_id, 0)

    def publish_pending(self) -> list[TaskResult]:
        """Take all pending results to publish them; mark the lease as closing if no message about it can follow."""
        self.uploads_for, self._pending_large = self.uploads_next_for, False
        results, self.pending, self.pending_bytes = self.pending, [], 0
        self._publishing_us = sum([result.duration_us for result in results])
        self.publishing = True
        self._sent, self._sent_bytes = len(results), self.result_bytes
        # While a give-back is under way, a publication must not close the lease: the closing message lets the master
        # delete the chunk's queue message. If the worker died before the give-back reached the master, no other worker
        # would get the tasks that it gives back.
        self.closing = self.exhausted and not self.returning
        return results

    def published(self) -> int:
        """Record that the publication under way has ended; return the execution time of its results."""
        self.publishing, self.uploads_for = False, None
        self.result_bytes -= self._sent_bytes
        self._sent = self._sent_bytes = 0
        published_us, self._publishing_us = self._publishing_us, 0
        return published_us

    def arrived(self, tasks: Range, item_bytes: int) -> None:
        """Record that the payload of these tasks has arrived."""
        here = ranges.intersect(self.unfetched, [tasks])
        self.unfetched = ranges.intersect(self.unfetched, [(0, tasks[0]), (tasks[1], self.lease.tasks)])
        for part in here:
            self.ready = ranges.union(self.ready, [part])
        self.ready_tasks = ranges.size(self.ready)
        self.item_bytes = max(self.item_bytes, item_bytes)
        if isinstance(self.lease.data, BlobData):
            self._segments[tasks] = ranges.size(here)

    def take(self, tasks: int) -> Range:
        """Take the next ready tasks, at most `tasks`, for an executor."""
        start, end = self.ready[0]
        if end - start <= tasks:
            del self.ready[0]
        else:
            end = start + tasks
            self.ready[0] = (end, self.ready[0][1])
        self.ready_tasks -= end - start
        self.fed += end - start
        self.first = False
        return start, end

    def ended_unfetched(self, results: Sequence[TaskResult], now_us: int) -> None:
        """Record results of tasks that were not downloaded, because no executor here can run them."""
        done = ranges.of([result.index for result in results])
        self.unfetched = ranges.subtract(self.unfetched, done)
        self.fed += len(results)  # because `finished` counts each result as that of a fed task
        self.finished(results, now_us)

    def put_back(self, tasks: Range) -> None:
        """Make an executor's tasks without results ready again; drop the tasks that the master does not want."""
        self.fed -= tasks[1] - tasks[0]
        # Without the intersection, a task that was cancelled meanwhile would run again.
        for part in [tasks] if self.wanted is None else ranges.intersect([tasks], self.wanted):
            self.ready = ranges.union(self.ready, [part])
        self.ready_tasks = ranges.size(self.ready)

    def failed_for_lack(self, result: ExecutorResult) -> None:
        """Make a task ready again, and add its time to `lost_us`: the task failed because this worker lacks something.

        The time is charged, because the agent cannot verify that the failure is real. Otherwise a user could compute
        for free by ending each task with such a failure.
        """
        self.lost_us += result.duration_us
        self.put_back((result.index, result.index + 1))

    def finished(self, results: Sequence[TaskResult], now_us: int) -> list[Range]:
        """Record results of tasks of one run; return the ranges of tasks whose downloaded data is no longer needed."""
        if not self.pending:
            self.pending_at_us = now_us
        # The client of a sealed package accepts no result without a seal.
        self.pending += results if self._seals is None else self._seals.sealed(results)
        sizes = [len(result.data) for result in results if result.data]
        data_bytes = sum(sizes)
        if data_bytes > INLINE_RESULT_BYTES and max(sizes) > INLINE_RESULT_BYTES:
            self._pending_large = True
        self.pending_bytes += data_bytes
        with_texts = [result for result in results if result.outcome != "ok" or result.stdout or result.stderr]
        self.result_bytes += data_bytes + _RESULT_BYTES * len(results) + sum(map(_text_bytes, with_texts))
        self.fed -= len(results)
        return self._used_up(ranges.of([result.index for result in results])) if self._segments else []

    def _used_up(self, done: Iterable[Range]) -> list[Range]:
        used: list[Range] = []
        for segment in list(self._segments):
            # A segment is the data that one download has brought. A run of tasks may reach from one segment into the
            # next. If all its results counted for the first segment, the data of that segment would be dropped while
            # other tasks need it.
            self._segments[segment] -= ranges.size(ranges.intersect(done, [segment]))
            if self._segments[segment] <= 0:
                del self._segments[segment]
                used.append(segment)
        return used

    def apply(self, view: LeaseView) -> None:
        """Record which tasks the master still wants; drop the tasks that it does not want and that no executor has."""
        # The master wants no task of a lease or package that has ended: `supervision.stop` then stops the running
        # tasks.
        self.wanted = view.ranges if view.state == "wanted" else []
        if self.ready or self.unfetched:
            self.ready = ranges.intersect(self.ready, self.wanted)
            self.unfetched = ranges.intersect(self.unfetched, self.wanted)
            self.ready_tasks = ranges.size(self.ready)

    def wants(self, index: int) -> bool:
        """Whether the master still wants the result of a task."""
        return self.wanted is None or ranges.contains(self.wanted, index)

    def give_back(self, tasks: int) -> Return:
        """Give back the last `tasks` unfetched tasks; if there are fewer, give back the last ready tasks too."""
        self.unfetched, tail = ranges.cut_tail(self.unfetched, tasks)
        self.ready, more = ranges.cut_tail(self.ready, tasks - ranges.size(tail))
        self.ready_tasks = ranges.size(self.ready)
        self.returning = True
        lost_us, self.lost_us = self.lost_us, 0
        # If results are pending or under way, or if there is a refusal, a later publication closes the lease.
        self.closing = self.exhausted and not (self.pending or self.publishing or self.refusal)
        return Return(
            **self.lease.identity(),
            seq=self.next_seq(),
            ranges=ranges.union(more, tail),
            closes=self.closing,
            attempt=self.lease.attempt,
            unfit=self.unfit,
            used_us=lost_us,
        )

    def reference(self) -> LeaseRef:
        """Return the lease's identity, for a beat."""
        return LeaseRef(**self.lease.identity())


def _text_bytes(result: TaskResult) -> int:
    """Return the approximate memory of a result's texts, in bytes."""
    return sum([len(text) for text in (result.message, result.traceback, result.stdout, result.stderr) if text])
