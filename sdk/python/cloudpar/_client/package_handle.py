"""A package under way: its state machine, who gets its results, and what was measured."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from msgspec.structs import replace

from cloudpar.errors import CloudparError, PackageFailed, SealBroken
from cloudpar.report import Report
from cloudpar_protocol.client_messages import FleetStatus, PackageStatus, Placement
from cloudpar_protocol.payloads import TaskResult, Unfit
from cloudpar_protocol.seals import Seals

from .failures import copied, outcome
from .package import News, Package
from .places import Places

SEAL_MEND = (
    "it was not unpickled. Somebody changed it, it is another task's, or the master's secret is a new one since: run "
    "the task again, in a new pool, and if it comes again see what may write to the master's storage"
)


class Receiver(Protocol):
    """Whoever wants a package's results. Called by one thread at a time."""

    deserialize_s: float

    def started(self, handle: "PackageHandle") -> None:
        """The package is at the master; called before all else."""

    def receive(self, results: Sequence[TaskResult]) -> None:
        """Results that are whole, each task once."""

    def end(self, failure: CloudparError | None) -> None:
        """Nothing more will come; why not everything came, if so."""


class PackageHandle:
    """One package under way. Its methods may be called by any thread.

    `attached` says that somebody else has started it: its results are kept, and the end of a pool neither cancels it
    nor waits for it, but for as long as somebody here is reading it: as long as there are `readers`.
    """

    def __init__(
        self,
        package: Package,
        receiver: Receiver,
        *,
        serialize_s: float = 0.0,
        show: Callable[[TaskResult], None] | None = None,
        on_news: "Callable[[PackageHandle], None]" = lambda _: None,
        seals: Seals | None = None,
        attached: bool = False,
        places: Places | None = None,
        name: str = "",
        code_hash: str = "",
    ) -> None:
        self.package = package
        self.receiver = receiver
        self.serialize_s = serialize_s
        self.attached = attached
        self.name = name
        self.code_hash = code_hash
        self._places = places
        self.readers = 0
        self.started_at = time.monotonic()
        self.ended_at: float | None = None
        self.ended = threading.Event()
        self.caught_up = threading.Event()
        """Set once everything is here that the master had when it was asked first."""
        self.executors = 0
        self.fleet: FleetStatus | None = None
        self.placement: Placement | None = None
        self.set_aside: list[Unfit] = []
        self._execute_us = 0
        self._seals = seals
        self._show = show
        self._on_news = on_news
        self._lock = threading.RLock()

    @property
    def holds(self) -> bool:
        """Whether a pool that ends waits for it."""
        return not self.ended.is_set() and (not self.attached or self.readers > 0)

    @property
    def id(self) -> str:
        """The package's id; it has one from its start on."""
        return self.package.id or ""

    def outcome(self, result: TaskResult) -> tuple[Any, BaseException | None]:
        """What a task came to: a value and None, or None and an exception. Of a sealed package, verified before."""
        value, error = self._opened(result)
        if error is not None:
            self._identify(error, result.index, result.input)
        return value, error

    def _opened(self, result: TaskResult) -> tuple[Any, BaseException | None]:
        if self._seals is not None and not self._seals.is_result(result):
            which = f"the result of task {result.index} of package {self.id}"
            lacks = "came without its seal" if result.seal is None else "is not what its seal says"
            return None, SealBroken(f"{which} {lacks}: {SEAL_MEND}")
        return outcome(result, self.package.codec)

    def lost_task(self, index: int) -> CloudparError:
        """Why a task that has no result will never have one, as an exception of its own."""
        failure = self.package.failure
        if failure is None:
            failure = PackageFailed(f"package {self.id} ended without this task's result")
        error = copied(failure)
        self._identify(error, index, None)
        return error

    def _identify(self, error: BaseException, index: int, called_with: str | None) -> None:
        places = self._places or Places(tasks=self.package.tasks)
        places.identify(error, self.id, index, called_with)

    def take(self, status: PackageStatus) -> News:
        """Hand on what a status brought; returns what must be fetched."""
        with self._lock:
            self.executors = max(self.executors, status.progress.executors)
            self.placement, self.set_aside = status.placement, status.set_aside
            news = self.package.take(status)
            self._hand_on(news.results)
            self._note_caught_up()
        self._on_news(self)
        return news

    def fetched(self, results: Sequence[TaskResult]) -> None:
        """Hand on results whose payloads came in."""
        with self._lock:
            self.package.fetched(len(results))
            self._hand_on(results)
            self._note_caught_up()
        self._on_news(self)

    def lost(self, error: CloudparError) -> None:
        """There will be no more news of it."""
        with self._lock:
            self.package.lost(error)
            self._hand_on(())
        self._on_news(self)

    def left(self, error: CloudparError) -> None:
        """Whoever asked for it asks no more, and it may go on: whoever reads on is told so."""
        with self._lock:
            self.package.lost(error)
            self._hand_on(())

    def cancelled(self) -> None:
        """Its user cancelled it."""
        with self._lock:
            self.package.cancelled()

    def _hand_on(self, results: Sequence[TaskResult]) -> None:
        if self.ended.is_set():
            return
        if results:
            self._execute_us += sum(result.duration_us for result in results)
            if self._show is not None:
                for result in results:
                    if result.stdout or result.stderr:
                        self._show(self._numbered(result))
        if self.package.phase == "ended":
            self.ended_at = self.ended_at or time.monotonic()
            # Before the program has the last results: what it prints next must not land on the line of a bar.
            self._on_news(self)
        if results:
            self.receiver.receive(results)
        if self.package.phase == "ended":
            self.receiver.end(self.package.failure)
            self.ended.set()
            self.caught_up.set()

    def _note_caught_up(self) -> None:
        if not self.package.more and not self.package.fetching:
            self.caught_up.set()

    def _numbered(self, result: TaskResult) -> TaskResult:
        """A result under the number that its task has in its map, which may be several packages (`buffersize`)."""
        base = 0 if self._places is None else self._places.base
        return replace(result, index=base + result.index) if base else result

    def report(self) -> Report:
        """The six points, as far as they are known now."""
        progress = self.package.progress
        return Report(
            package_id=self.id,
            tasks=self.package.tasks,
            errors=progress.errors,
            executors=self.executors,
            charged_s=progress.charged_us / 1e6,
            serialize_s=self.serialize_s,
            retrieve_s=progress.retrieve_us / 1e6,
            execute_s=self._execute_us / 1e6,
            publish_s=progress.publish_us / 1e6,
            deserialize_s=self.receiver.deserialize_s,
            await_s=(self.ended_at or time.monotonic()) - self.started_at,
        )
