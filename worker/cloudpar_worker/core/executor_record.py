"""One executor as the state machine sees it: what it was fed, what it has used, why it is being stopped."""

from collections import deque
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from cloudpar_protocol.payloads import Outcome
from cloudpar_protocol.worker_messages import Lease

from .executor_result import SKIPPED, ExecutorResult
from .lease_record import LeaseRecord

LATENCY_US: Final = 10_000
"""By so much, 5 % and some more for each task and byte, may claims fall short of the agent's clock."""
TASK_LATENCY_US: Final = 50
BYTES_A_US: Final = 200
CODES: Final = 500
"""So many different functions an executor unpickles before a fresh one takes its place."""


class FedRun(Struct):
    """A run in an executor; `next` is its first task without a result."""

    record: LeaseRecord
    next: int
    end: int
    recalled: bool = False
    """Its tasks are back where they came from; the executor will pass over them."""


class Stop(Struct, frozen=True):
    """Why an executor is being killed. Without an outcome no task is to blame."""

    outcome: Outcome | None = None
    message: str = ""
    lease_id: str = ""
    index: int = -1


class ExecutorRecord:
    """An executor's runs and its clock.

    Attributes:
        python: The version that it runs.
        ready: It has begun, so it can be fed.
        account: Whose tasks it has seen; None: it is fresh.
        threads: The thread limit of all its tasks: libraries read it once, when they are loaded.
        runs: What it was fed and has no results for; the first task of the first run is the one that runs.
        last_package_id: The package of the results that came last.
        stop: Set when it is being killed.
        since_us: When, by the agent's clock, the running task began at the latest.
        awaits: Its task waits for tasks of its own, since `awaits_at_us`.
        memory_bytes: What it used when it was looked at last.
        suspect: Its memory was large; look again between tasks.
        recalled_at_us: When its queued tasks were recalled, until that is known to have worked.
    """

    def __init__(self, executor_id: int, python: str) -> None:
        self.executor_id = executor_id
        self.python = python
        self.ready = False
        self.account: str | None = None
        self.threads: int | None = None
        self.runs: deque[FedRun] = deque()
        self.last_package_id = ""
        self.stop: Stop | None = None
        self.started_at_us = 0
        self.awaits = False
        self.awaits_at_us = self.memory_bytes = 0
        self.oversized = False
        self.proven = False
        self.codes: set[str] = set()
        self.recalled_at_us: int | None = None
        self._fed_tasks = 0
        self._recalled = (0, 0)
        self._skippable = (0, 0)
        self._busy_at_us = 0
        self._charged_us = 0
        self._carried = 0

    @property
    def usable(self) -> bool:
        """Whether it may be fed at all."""
        return self.ready and self.stop is None

    def serves(self, lease: Lease) -> bool:
        """Whether it may run these tasks: it is of one account, one thread limit, and one version of Python."""
        if self.account is not None and (self.account, self.threads) != (lease.account, lease.threads_per_task):
            return False
        return self.python == lease.python or lease.codec != "pickle"

    @property
    def worn(self) -> bool:
        """Whether a fresh one should take its place."""
        return len(self.codes) >= CODES

    @property
    def running(self) -> FedRun | None:
        """The run at whose head it works."""
        return self.runs[0] if self.runs else None

    @property
    def depth(self) -> int:
        """How deep the task that runs nests; -1 for none."""
        return self.runs[0].record.lease.depth if self.runs else -1

    def position(self) -> tuple[str, int]:
        """The lease and the number of the task that runs; ("", -1) for none."""
        return (self.runs[0].record.lease.lease_id, self.runs[0].next) if self.runs else ("", -1)

    def expects(self, results: list[ExecutorResult]) -> bool:
        """Whether these are results of the tasks it was fed, in that order."""
        offset = 0
        first, end = self._skippable
        if SKIPPED in [result.outcome for result in results]:
            for count, result in enumerate(results, self.started - 1):
                if result.outcome == SKIPPED and not first <= count < end:
                    return False  # a task cannot have itself run for nothing
        for run in self.runs:
            part = results[offset : offset + run.end - run.next]
            if [result.index for result in part] != list(range(run.next, run.next + len(part))):
                return False
            offset += len(part)
            if offset == len(results):
                return True
        return offset == len(results)

    def queued(self) -> int:
        """Tasks fed beyond the one that runs."""
        return sum([run.end - run.next for run in self.runs]) - 1 if self.runs else 0

    def feed(self, record: LeaseRecord, start: int, end: int, now_us: int) -> None:
        """It has been sent the tasks [start, end)."""
        if not self.runs:
            self.started_at_us = self._busy_at_us = now_us
            self._charged_us = self._carried = 0
        self.account, self.threads = record.lease.account, record.lease.threads_per_task
        self.codes.add(record.lease.code.hash)
        self._fed_tasks += end - start
        self._carried += record.item_bytes * (end - start)
        self.runs.append(FedRun(record, start, end))

    def has_queued(self) -> bool:
        """Whether tasks wait behind the one that runs."""
        runs = self.runs
        return bool(runs) and (runs[0].next + 1 < runs[0].end or any(not run.recalled for run in list(runs)[1:]))

    @property
    def started(self) -> int:
        """How many tasks it has begun, as far as its results tell."""
        return self._fed_tasks - self.queued()

    def recall(self, now_us: int) -> tuple[int, int]:
        """Its queued tasks are asked back; their numbers by its own count."""
        self.recalled_at_us = now_us
        self._recalled = (self.started, self._fed_tasks)
        # What it passed over for an earlier recall may lie in its channel still, unread.
        first, end = self._skippable
        self._skippable = (first if end >= self.started else self.started, self._fed_tasks)
        return self._recalled

    def passes_over_all(self, started: int) -> bool:
        """Whether, having begun so many, it is still in the task in which it was when its queued ones were recalled."""
        return self._recalled == (started, self._fed_tasks) and self.started == started

    def take_back(self) -> list[FedRun]:
        """All queued tasks are back: parts of its runs, which stay for its word that it passed over them."""
        first, *others = self.runs
        queued = [run for run in others if not run.recalled]
        if first.next + 1 < first.end:
            tail = FedRun(first.record, first.next + 1, first.end)
            first.end = first.next + 1
            self.runs = deque([first, tail, *others])
            queued.insert(0, tail)
        for run in queued:
            run.recalled = True
        return queued

    def advance(self, tasks: int) -> None:
        """The first `tasks` tasks of its first run have results."""
        self.awaits = False
        run = self.runs[0]
        self.last_package_id = run.record.lease.package_id
        run.next += tasks
        if run.next == run.end:
            self.runs.popleft()
        self.proven = True

    def audit(self, results: list[ExecutorResult], absent_at_us: int, now_us: int) -> list[ExecutorResult]:
        """The results with the durations that are charged.

        What an executor claims is believed between two bounds of the agent's own clock, both counted from when it had
        been idle: not more than has passed since, and not less (but for latencies) than until these results were not
        there yet: so long it has certainly been working.
        """
        claimed = sum([result.duration_us for result in results])
        at_most = now_us - self._busy_at_us - self._charged_us
        if claimed > at_most:
            results = [
                replace(result, duration_us=max(result.duration_us * at_most // claimed, 1)) for result in results
            ]
            claimed = sum([result.duration_us for result in results])
        self._carried += len(results) * TASK_LATENCY_US * BYTES_A_US
        self._carried += sum([len(result.data) for result in results if result.data])
        observed = absent_at_us - self._busy_at_us
        missing = observed - self._charged_us - claimed
        if missing > LATENCY_US + observed // 20 + self._carried // BYTES_A_US:
            results = [replace(results[0], duration_us=results[0].duration_us + missing), *results[1:]]
            claimed += missing
        self._charged_us += claimed
        self.started_at_us = now_us
        return results
