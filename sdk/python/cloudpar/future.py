"""Futures of submitted tasks."""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar

from cloudpar_protocol.payloads import Range, TaskResult

from ._arguments.argument_types import seconds_or_none
from ._client.failures import copied
from .errors import CloudparError, TaskCancelled

if TYPE_CHECKING:
    from ._client.package_handle import PackageHandle
    from ._client.session import Session

T = TypeVar("T")

CANCEL_S = 10.0
"""How long `cancel` waits for the start of the task's package, in seconds. Then it waits at most as long again for the
master's answer. The time is short, since an event loop that calls `cancel` is blocked meanwhile.
"""

log = logging.getLogger("cloudpar")

_places_known = threading.Condition()
"""Wakes threads that wait until a task has a package and an index in this package. A future's own condition cannot do
this: the standard library's `Future.result` treats every notification of that condition as the end of the task.
"""


def _announce(_: object = None) -> None:
    with _places_known:
        _places_known.notify_all()


class TaskFuture(Future[T]):
    """The future of one task. Unlike in other executors, `cancel` also stops a task that is already running.

    `running()` is True from the moment when the pool sends the task to the master, even if no worker has started the
    task.
    """

    def __init__(self, interrupt: Callable[[], None] | None = None) -> None:
        super().__init__()
        self._interrupt_pool = interrupt
        self._batch: tuple[FutureReceiver, int] | None = None
        self._place: tuple[str, int] | None = None

    @property
    def package_id(self) -> str | None:
        """The id of the task's package, for `Pool.attach`. Reading this property waits until the master has the task.

        The id is None if the task never reached the master, because the task was cancelled before, or because its
        package could not be started.

        Example:
            >>> from cloudpar import Pool
            >>> with Pool(workers=1) as pool:
            ...     future = pool.submit(abs, -1)
            ...     attachment = pool.attach(future.package_id)
            ...     attachment.package_id == future.package_id, future.task_index
            (True, 0)
        """
        place = self._wait_for_place()
        return None if place is None else place[0]

    @property
    def task_index(self) -> int | None:
        """The task's number in its package, from 0. Like `package_id`, this property waits and may be None."""
        place = self._wait_for_place()
        return None if place is None else place[1]

    def _wait_for_place(self) -> tuple[str, int] | None:
        if self._place is None and not self.done():
            self.add_done_callback(_announce)
            with _places_known:
                _places_known.wait_for(lambda: self._place is not None or self.done())
        return self._place

    def cancel(self) -> bool:
        """Cancel the task, whether it is queued or running.

        Returns:
            True if the task will have no value: it was already cancelled, the pool had not sent it yet, or the master
                has confirmed the cancellation. False if the task has already ended in another way, or if its package
                has not started within 10 s. Also False if the master does not answer within 10 s, or refuses the
                request.
        """
        if super().cancel():
            return True
        if self.done() or self._batch is None:
            return self.cancelled()
        batch, index = self._batch
        return self.set_cancelled() if batch.stop(index) else self.cancelled()

    def set_cancelled(self) -> bool:
        """Mark the future as cancelled, unless it has ended in another way; return whether it is cancelled."""
        with self._condition:
            if self._state not in {"PENDING", "RUNNING"}:
                return self._state in {"CANCELLED", "CANCELLED_AND_NOTIFIED"}
            self._state = "CANCELLED"
            self._condition.notify_all()
        self._invoke_callbacks()  # type: ignore[attr-defined]
        self.set_running_or_notify_cancel()
        return True

    def result(self, timeout: float | None = None) -> T:
        """Return the task's value; see `concurrent.futures.Future.result`.

        Ctrl-C during the wait cancels all unfinished tasks of the pool's `submit` calls. This includes the tasks that
        the pool has not yet put into a package.
        """
        __tracebackhide__ = True
        try:
            return super().result(seconds_or_none("timeout", timeout))
        except KeyboardInterrupt:
            self._interrupt()
            raise

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return the exception that the task ended with, or None; see `concurrent.futures.Future.exception`.

        Ctrl-C during the wait has the same effect as in `result`.
        """
        try:
            return super().exception(seconds_or_none("timeout", timeout))
        except KeyboardInterrupt:
            self._interrupt()
            raise

    def _interrupt(self) -> None:
        interrupt = self._interrupt_pool
        if interrupt is not None and not self.done():
            interrupt()


class FutureReceiver:
    """Passes each result of a package to the future of its task."""

    def __init__(self, futures: Sequence[TaskFuture[Any]], session: "Session") -> None:
        self._futures: Sequence[TaskFuture[Any]] = futures
        self._session = session
        self._started = Event()
        self._handle: PackageHandle | None = None
        for index, future in enumerate(futures):
            future._batch = self, index  # noqa: SLF001 - the two classes belong together

    def started(self, handle: "PackageHandle | None") -> None:
        """Give each future its package id and its task index. `handle` is None if the package was not started."""
        self._handle = handle
        self._started.set()
        if handle is not None:
            for index, future in enumerate(self._futures):
                future._place = handle.id, index  # noqa: SLF001 - the two classes belong together
        _announce()

    def fail(self, error: Exception) -> None:
        """Fail the futures, because the start of their package failed. If the master has the package, cancel it."""
        if self._handle is not None:
            self._session.read(self._handle)
        self.started(None)
        for future in self._futures:
            resolve(future, None, copied(error) if isinstance(error, CloudparError) else error)

    def stop(self, index: int) -> bool:
        """Cancel one task at the master; return whether the master confirms that the task will have no value."""
        if not self._started.wait(CANCEL_S) or self._handle is None:
            return False
        try:
            reply = self._session.cancellations.cancel(self._handle.id, [(index, index + 1)], allowance_s=CANCEL_S)
        except CloudparError as error:
            log.warning("cloudpar: a task could not be cancelled: %s", error)
            return False
        return any(start <= index < end for start, end in reply.cancelled)

    def set_cancelled(self, ranges: Iterable[Range]) -> None:
        """Mark the futures of these tasks as cancelled, because the master has cancelled the tasks."""
        for start, end in ranges:
            for future in self._futures[start:end]:
                future.set_cancelled()

    def receive(self, results: Sequence[TaskResult]) -> None:
        """Resolve the futures of these results. The futures' callbacks run in the calling thread."""
        for result in results:
            future = self._futures[result.index]
            if future.done():
                continue
            if result.outcome == "cancelled":  # this may arrive before the answer to `cancel`
                future.set_cancelled()
                continue
            if self._handle is None:
                raise AssertionError("a result before its package")
            resolve(future, *self._handle.outcome(result))

    def end(self, failure: CloudparError | None) -> None:
        """Fail the futures without a result, or cancel them if the package was cancelled. Acknowledge the package."""
        for index, future in enumerate(self._futures):
            if future.done() or self._handle is None:
                continue
            if isinstance(failure, TaskCancelled):
                future.set_cancelled()
            else:
                resolve(future, None, self._handle.lost_task(index))
        self._futures = ()
        if self._handle is not None:
            self._session.read(self._handle)


def resolve(future: TaskFuture[Any], value: object, error: BaseException | None) -> None:
    """Give a future its value or its error, unless another thread has just cancelled the future."""
    # Without this, a single future would keep all futures of its batch and its pool's client alive.
    future._batch = future._interrupt_pool = None  # noqa: SLF001 - the two classes belong together
    try:
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)
    except Exception:  # InvalidStateError: another thread has just cancelled the future
        if not future.cancelled():
            raise
