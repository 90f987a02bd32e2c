"""One lease at the worker: which of its tasks wait, run, have results, and what of that the master knows."""

from collections.abc import Sequence
from typing import Final, Literal

from cloudpar_protocol.payloads import BlobData, Range, TaskResult, Unfit
from cloudpar_protocol.seals import Seals
from cloudpar_protocol.worker_messages import Lease, LeaseRef, LeaseView, Return

from . import ranges
from .executor_result import ExecutorResult

FREE_US: Final = 1_000_000
"""How long a task may run, before it fails for what this worker lacks, without being charged for that."""

Reason = Literal["python", "seal"]


class LeaseRecord:
    """A lease's tasks, each in one of: unfetched, ready, fed, pending, published, given back, not wanted.

    Attributes:
        lease: As it came.
        unfetched: Tasks whose payload is not here, in order.
        ready: Tasks that can be fed, in order.
        fed: How many tasks are in executors.
        wanted: What the master last said it wants; None before it has said anything.
        pending: Results that are in no publication.
        pending_at_us: The time of the first of them.
        publishing: A publication is under way.
        returning: A return is under way.
        downloading: A payload is under way.
        closing: The publication or return that closes the lease is under way.
        undeliverable: Its payload cannot be had: what is unfetched goes back, or,
        abandoned: its lease is left to run out.
        first: It has the first task of its package, and no executor was ever given any of it.
        refusal: Why none of it can ever run here, as a publication's reason and for people; None: it can.
        unfit: What this worker lacks, so that nothing of it is to run here; None: nothing, or no worker has it.
        lost_us: Execution time of tasks that failed for that, beyond what is free, and that no return has said.
        retrieve_us, publish_us: What its retrieval and its package's publications cost, until a publication says it.
    """

    def __init__(self, lease: Lease, arrived_at_us: int, retrieve_us: int) -> None:
        self.lease = lease
        self.arrived_at_us = arrived_at_us
        self.retrieve_us = retrieve_us
        code = lease.code
        here = not (code.inline is None and code.reference is None) and not isinstance(lease.data, BlobData)
        self.unfetched: list[Range] = [] if here else list(lease.ranges)
        self.ready: list[Range] = list(lease.ranges) if here else []
        self.ready_tasks = ranges.count(self.ready)
        self.fed = 0
        self.first = lease.start == 0
        self.wanted: list[Range] | None = None
        self.pending: list[TaskResult] = []
        self.pending_bytes = 0
        self.pending_at_us = 0
        self.publishing = self.returning = self.downloading = self.closing = False
        self.undeliverable = self.abandoned = False
        self.refusal: tuple[Reason, str] | None = None
        self.unfit: Unfit | None = None
        self.lost_us = 0
        # What is not sealed as it should be is refused before anything of it runs: then nothing is to be sealed here.
        self._seals = Seals(lease.seal_key, lease.package_id) if lease.seal_key is not None else None
        self.publish_us = 0
        self.item_bytes = 0
        self._seq = 0
        self._segments: dict[Range, int] = {}
        self._publishing_us = self._sent = 0

    @property
    def unpublished(self) -> int:
        """How many results the master has not, as far as is known here."""
        return len(self.pending) + self._sent

    @property
    def untouched(self) -> int:
        """How many tasks no executor has."""
        return self.ready_tasks + ranges.count(self.unfetched)

    @property
    def started(self) -> bool:
        """Executors have something of it, or the master does not have all of its results."""
        return bool(self.fed or self.unpublished or self.publishing)

    @property
    def exhausted(self) -> bool:
        """Nothing is left to run, and nothing runs."""
        return not (self.ready or self.unfetched or self.fed)

    def next_seq(self) -> int:
        """For the next publication or return."""
        self._seq += 1
        return self._seq - 1

    def refuse(self, reason: Reason, message: str) -> None:
        """None of it is to run at all: its package fails, and says why."""
        self.drop_untouched()
        self.refusal = reason, message

    def drop_untouched(self) -> None:
        """None of it will run here."""
        self.ready, self.unfetched, self.ready_tasks = [], [], 0

    def report_cost(self, unreported_us: dict[str, int]) -> None:
        """The next publication says what earlier ones of the package cost."""
        self.publish_us = unreported_us.pop(self.lease.package_id, 0)

    def publish_pending(self) -> list[TaskResult]:
        """Take all results for a publication, which closes the lease when nothing will follow."""
        results, self.pending, self.pending_bytes = self.pending, [], 0
        self._publishing_us = sum([result.duration_us for result in results])
        self.publishing = True
        self._sent = len(results)
        self.closing = self.exhausted and not self.returning
        return results

    def published(self) -> int:
        """The master has the publication under way; returns the execution time it carried."""
        self.publishing = False
        self._sent = 0
        published_us, self._publishing_us = self._publishing_us, 0
        return published_us

    def arrived(self, tasks: Range, item_bytes: int) -> None:
        """The payload of these tasks is here."""
        here = ranges.intersect(self.unfetched, [tasks])
        self.unfetched = ranges.intersect(self.unfetched, [(0, tasks[0]), (tasks[1], self.lease.tasks)])
        for part in here:
            self.ready = ranges.add(self.ready, part)
        self.ready_tasks = ranges.count(self.ready)
        self.item_bytes = max(self.item_bytes, item_bytes)
        if isinstance(self.lease.data, BlobData):
            self._segments[tasks] = ranges.count(here)

    def take(self, tasks: int) -> Range:
        """The next ready tasks, at most so many, for an executor."""
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

    def put_back(self, tasks: Range) -> None:
        """What an executor had been fed and did not begin, as far as it is wanted still."""
        self.fed -= tasks[1] - tasks[0]
        for part in [tasks] if self.wanted is None else ranges.intersect([tasks], self.wanted):
            self.ready = ranges.add(self.ready, part)
        self.ready_tasks = ranges.count(self.ready)

    def failed_for_lack(self, result: ExecutorResult) -> None:
        """A fed task failed for what this worker lacks; it goes back.

        An import that fails takes no time to speak of, and costs nothing. What runs for longer before it fails is
        charged: else whoever ends each task by such a failure would compute for nothing.
        """
        self.lost_us += max(result.duration_us - FREE_US, 0)
        self.put_back((result.index, result.index + 1))

    def finished(self, results: Sequence[TaskResult], now_us: int) -> list[Range]:
        """Results of fed tasks; returns the segments of payload that nobody needs any more."""
        if not self.pending:
            self.pending_at_us = now_us
        self.pending += results if self._seals is None else self._seals.sealed(results)
        self.pending_bytes += sum([len(result.data) for result in results if result.data])
        self.fed -= len(results)
        return self._used_up(results[0].index, len(results)) if self._segments else []

    def _used_up(self, index: int, tasks: int) -> list[Range]:
        # Results come in runs, and a run lies within one segment: runs are cut from `ready`, segment after segment.
        for segment in self._segments:
            if segment[0] <= index < segment[1]:
                self._segments[segment] -= tasks
                if self._segments[segment] <= 0:
                    del self._segments[segment]
                    return [segment]
                break
        return []

    def view(self, view: LeaseView) -> None:
        """Keep of the untouched tasks only what the master wants."""
        self.wanted = view.ranges if view.state == "wanted" else []
        if self.ready or self.unfetched:
            self.ready = ranges.intersect(self.ready, self.wanted)
            self.unfetched = ranges.intersect(self.unfetched, self.wanted)
            self.ready_tasks = ranges.count(self.ready)

    def wants(self, index: int) -> bool:
        """Whether the result of a task is worth its time."""
        return self.wanted is None or ranges.contains(self.wanted, index)

    def give_back(self, tasks: int) -> Return:
        """Cut so many tasks from the untouched end, at least one."""
        self.unfetched, tail = ranges.cut_tail(self.unfetched, tasks)
        self.ready, more = ranges.cut_tail(self.ready, tasks - ranges.count(tail))
        self.ready_tasks = ranges.count(self.ready)
        parts: list[Range] = []
        for part in [*more, *tail]:
            parts = ranges.add(parts, part)
        self.returning = True
        lost_us, self.lost_us = self.lost_us, 0
        self.closing = self.exhausted and not (self.pending or self.publishing)
        lease = self.lease
        return Return(
            package_id=lease.package_id,
            lease_id=lease.lease_id,
            receipt=lease.receipt,
            start=lease.start,
            end=lease.end,
            generation=lease.generation,
            seq=self.next_seq(),
            ranges=parts,
            closes=self.closing,
            attempt=lease.attempt,
            unfit=self.unfit,
            used_us=lost_us,
        )

    def reference(self) -> LeaseRef:
        """For a beat."""
        lease = self.lease
        return LeaseRef(
            package_id=lease.package_id,
            lease_id=lease.lease_id,
            receipt=lease.receipt,
            start=lease.start,
            end=lease.end,
            generation=lease.generation,
        )
