"""One package as its client sees it: a state machine without I/O, threads or clocks.

    starting ──started──> running ──take or fetched──> ended
       │                     └────lost(error)────────────^
       └──────────lost(error)────────────────────────────^

Results come in any order, possibly twice, and the package passes on each result once. Payloads in blobs are downloaded
separately (`fetching`). The package has ended when no download is left and either all its results have arrived, or the
master says that no more results will come. `lost` also ends the package.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from cloudpar.errors import CloudparError, PackageFailed, TaskCancelled
from cloudpar_protocol.client_messages import PackageState, PackageStatus, Progress
from cloudpar_protocol.payloads import Codec, Link, TaskResult

from .failures import package_error


@dataclass(frozen=True)
class News:
    """The new results of a status: `results` are complete, and `links` lead to the missing payloads of `fetches`."""

    results: Sequence[TaskResult]
    fetches: Sequence[TaskResult]
    links: dict[str, Link]


@dataclass
class Package:
    """The client's knowledge of one package.

    Attributes:
        tasks: The number of tasks; 0 for an attached package until its first status.
        cursor: The position up to which the package's results have been read.
        seen: One byte per task, which is 1 once the task's result was passed on or its download has started.
        codec: How the results are serialized; None for an attached package until its first status. Later statuses do
            not change the codec. Otherwise a forged status could make this client unpickle results that are
            MessagePack.
        received: How many results are complete, including downloaded ones.
        fetching: How many results are being downloaded.
        more: Whether the master has further results ready.
        reread: Whether this client reads the results a second time, from the start.
        failure: The reason why the tasks without a result will never have a result; None while there is no such reason.
    """

    tasks: int
    id: str | None = None
    phase: Literal["starting", "running", "ended"] = "starting"
    state: PackageState = "running"
    cursor: int = 0
    seen: bytearray = field(default_factory=bytearray, repr=False)
    received: int = 0
    fetching: int = 0
    more: bool = False
    reread: bool = False
    codec: Codec | None = None
    progress: Progress = field(default_factory=lambda: Progress(tasks=0))
    failure: CloudparError | None = None

    def __post_init__(self) -> None:
        self.seen = bytearray(self.tasks)

    def started(self, package_id: str) -> None:
        """Record that the master has accepted the package."""
        self.id, self.phase = package_id, "running"

    def take(self, status: PackageStatus) -> News:
        """Read one status, and return its new results."""
        if self.phase == "ended":
            return News((), (), {})
        if not self.tasks:
            self.tasks, self.seen = status.progress.tasks, bytearray(status.progress.tasks)
        seen = self.seen
        results: list[TaskResult] = []
        fetches: list[TaskResult] = []
        for result in status.results:
            if not seen[result.index]:
                seen[result.index] = 1
                (results if result.blob is None else fetches).append(result)
        results += self._cancelled_one_by_one(status)
        self.received += len(results)
        self.fetching += len(fetches)
        self.state, self.cursor, self.more = status.state, status.cursor, status.more
        self.progress, self.codec = status.progress, self.codec or status.codec
        if self.state not in {"running", "completed", "error"} and self.failure is None:
            self.failure = package_error(self.state, status.reason, status.message)
        self._end_if_done()
        return News(results, fetches, status.links)

    def _cancelled_one_by_one(self, status: PackageStatus) -> Iterator[TaskResult]:
        """Yield a result for each newly cancelled task, because a status has only the ranges of cancelled tasks."""
        for start, end in status.cancelled:
            for index in range(start, end) if self.seen.count(0, start, end) else ():
                if not self.seen[index]:
                    self.seen[index] = 1
                    yield TaskResult(index, "cancelled", 0, message="the task was cancelled")

    def fetched(self, count: int) -> None:
        """Record that the payloads of `count` results were downloaded."""
        self.fetching -= count
        self.received += count
        self._end_if_done()

    def lost(self, error: CloudparError) -> None:
        """Record that no more news will come, because of `error`; no-op if the package has ended."""
        if self.phase != "ended":
            self.failure, self.phase, self.more = error, "ended", False

    def cancelled(self) -> None:
        """Record that the user cancelled the package.

        When the package has ended, its tasks without a result fail with TaskCancelled, unless another failure was known
        before.
        """
        self.failure = self.failure or TaskCancelled("the package was cancelled")

    def _end_if_done(self) -> None:
        whole = bool(self.tasks) and self.received == self.tasks
        if self.fetching or not (whole or (self.state != "running" and not self.more)):
            return
        if self._has_missed_results():
            self.cursor, self.more, self.reread = 0, True, True
            return
        self.phase = "ended"
        if not whole and self.failure is None:
            self.failure = PackageFailed(
                f"the master says that package {self.id} is {self.state}, but {self.tasks - self.received} of its "
                "results never came: please report this"
            )

    def _has_missed_results(self) -> bool:
        """Whether the ended package has results that this client has not read, so that it must read them all again.

        If the operator restores the master's data from a backup, tasks that had ended run again. Their results, and
        those of other tasks, then come at positions before this client's cursor.
        """
        return self.received < self.progress.done and not self.reread and self.state != "expired"
