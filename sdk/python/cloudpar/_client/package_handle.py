"""A package under way: its state machine, the receiver of its results, and its measurements."""

import dataclasses
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from msgspec.structs import replace

from cloudpar.errors import CloudparError, PackageFailed, SealBroken, TaskError
from cloudpar.report import Report
from cloudpar_protocol.client_messages import FleetStatus, PackageStatus, Placement
from cloudpar_protocol.payloads import Codec, TaskResult, Unfit
from cloudpar_protocol.seals import Seals, is_pickle

from .failures import copied, outcome
from .package import News, Package
from .places import Places

SEAL_FIX = (
    "it was not unpickled. A program with write access to the master's storage has changed it or put another task's "
    "result in its place, or the master has a new secret: run the task again in a new pool. If the error comes back, "
    "check who can write to the master's storage"
)


class Receiver(Protocol):
    """Takes a package's results. Only one thread at a time calls its methods."""

    def started(self, handle: "PackageHandle") -> None:
        """Record that the master has accepted the package. Called before the other methods."""

    def receive(self, results: Sequence[TaskResult]) -> None:
        """Take complete results. No task has a second result."""

    def end(self, failure: CloudparError | None) -> None:
        """Record that no more results will come; `failure` says why some are missing, or is None."""


class PackageHandle:
    """One package under way. Any thread may use the handle.

    An `attached` handle was made by `Pool.attach`. When the pool shuts down, it neither cancels nor acknowledges such a
    package. It waits for the package only while the program reads the results, that is, while `readers` is above 0.
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
        """Is set once this process has received every result that the master had at the first request for news. If the
        package ends earlier, it is set at the end of the package.
        """
        self.executors = 0
        self.fleet: FleetStatus | None = None
        self.placement: Placement | None = None
        self.set_aside: list[Unfit] = []
        self._execute_us = 0
        self._deserialize_s = 0.0
        self._seals = seals
        self._show = show
        self._on_news = on_news
        self._lock = threading.RLock()

    @property
    def holds(self) -> bool:
        """Whether a pool that shuts down waits for this package."""
        return not self.ended.is_set() and (not self.attached or self.readers > 0)

    @property
    def id(self) -> str:
        """The package's id; empty until the package has started."""
        return self.package.id or ""

    def outcome(self, result: TaskResult) -> tuple[Any, BaseException | None]:
        """Decode a task's result: return its value and None, or None and its exception.

        In a sealed package, this method verifies the seal first. It does not decode a result without a seal or with a
        wrong seal: the exception is then SealBroken.
        """
        started_at = time.perf_counter()
        value, error = self._opened(result)
        self._deserialize_s += time.perf_counter() - started_at
        if error is not None:
            self._identify(error, result.index, result.input)
        return value, error

    def _opened(self, result: TaskResult) -> tuple[Any, BaseException | None]:
        codec = self.package.codec
        assert codec is not None  # noqa: S101 - results come with a status, which names the codec
        if self._seals is not None and (fault := _fault(result, self._seals, codec)):
            return None, SealBroken(f"the result of task {result.index} of package {self.id} {fault}: {SEAL_FIX}")
        return outcome(result, codec)

    def lost_task(self, index: int) -> CloudparError:
        """Return a new exception that says why this task will never have a result."""
        failure = self.package.failure
        if failure is None:
            failure = PackageFailed(f"package {self.id} ended without this task's result")
        error = copied(failure)
        # Other failures concern the whole package. With a note about this task they would look like a fault of the
        # task.
        self._identify(error, index, None, note=isinstance(failure, TaskError))
        return error

    def _identify(self, error: BaseException, index: int, called_with: str | None, *, note: bool = True) -> None:
        places = self._places or Places(tasks=self.package.tasks)
        places.identify(error, self.id, index, called_with, note=note)

    def drop_values(self) -> None:
        """Free the arguments of the tasks, which only errors of results that are still to be read would name.

        The pool keeps the handle for its last report, and the arguments may be large.
        """
        if self._places is not None:
            self._places = dataclasses.replace(self._places, values=None)

    def take(self, status: PackageStatus) -> News:
        """Give the complete results of a status to the receiver, and return the news.

        The caller must download the `fetches` of the news.
        """
        with self._lock:
            self.executors = max(self.executors, status.progress.executors)
            self.placement, self.set_aside = status.placement, status.set_aside
            news = self.package.take(status)
            self._hand_on(news.results)
            self._note_caught_up()
        self._on_news(self)
        return news

    def fetched(self, results: Sequence[TaskResult]) -> None:
        """Give the receiver results whose payloads were downloaded."""
        with self._lock:
            self.package.fetched(len(results))
            self._hand_on(results)
            self._note_caught_up()
        self._on_news(self)

    def lost(self, error: CloudparError) -> None:
        """End the package with an error, because no more news will come. If it has ended already, do not change it."""
        self.left(error)
        self._on_news(self)

    def left(self, error: CloudparError) -> None:
        """End the package for this client only; at the master it may continue.

        For each task without a result, readers get the error. This method does nothing if the package has ended.
        """
        with self._lock:
            self.package.lost(error)
            self._hand_on(())

    def cancelled(self) -> None:
        """Record that the user cancelled the package."""
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
            # The progress bar ends before the program gets the last results. The program may then print, and its text
            # needs a line of its own.
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
        """Replace a result's index in its package by its index in the map.

        With `buffersize` a map may have several packages.
        """
        base = 0 if self._places is None else self._places.base
        return replace(result, index=base + result.index) if base else result

    def report(self) -> Report:
        """Return the measurements so far, at all six points."""
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
            deserialize_s=self._deserialize_s,
            await_s=(self.ended_at or time.monotonic()) - self.started_at,
        )


def _fault(result: TaskResult, seals: Seals, codec: Codec) -> str | None:
    """Say why a result of a sealed package must not be decoded; None if it may be decoded."""
    if not seals.is_result(result):
        return "came without its seal" if result.seal is None else "is not what its seal says"
    # For an attached package, only the master says which codec it has. If the master named the wrong codec, text in a
    # MessagePack value could run as a pickle.
    if codec == "pickle" and result.data is not None and not is_pickle(result.data):
        return "is MessagePack, but the master says that it is a pickle"
    return None
