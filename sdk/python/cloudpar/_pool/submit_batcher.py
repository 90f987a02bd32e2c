"""Sends submitted tasks to the master. Tasks that are submitted while a package starts share the next package."""

import contextlib
import pickle
import threading
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from cloudpar._arguments.map_options import MapOptions
from cloudpar._arguments.pool_options import PoolOptions
from cloudpar._client.orders import Order
from cloudpar._client.package_key import PackageKey
from cloudpar._client.places import Places
from cloudpar._serialization.carried import PickledCall
from cloudpar._serialization.packer import Packer
from cloudpar._serialization.packing import Packed
from cloudpar._serialization.pickling import PROTOCOL, DataNeeds
from cloudpar._serialization.task_code import Code, serialize
from cloudpar.errors import CloudparError, TooLarge
from cloudpar.future import FutureReceiver, TaskFuture, resolve

if TYPE_CHECKING:
    from cloudpar._client.session import Session
    from cloudpar._serialization.project.shipment import Shipper

BATCH_BYTES = 64 << 20
BATCH_TASKS = 100_000
ACKNOWLEDGE_S = 1.0
"""How long an acknowledgement waits for further acknowledgements, in seconds, so that they share one request."""

ACKNOWLEDGE_COUNT = 50


class Submission(NamedTuple):
    """A task that was submitted and has not started yet.

    `data` is the serialized (args, kwargs). `needs` are the modules that the function and the data need, and the
    pickled classes and functions to which the data refers.
    """

    future: TaskFuture[Any]
    code: Code
    data: bytes
    needs: DataNeeds
    serialize_s: float


class SubmitBatcher:
    """One thread that starts packages for submitted tasks, and acknowledges packages that have been read."""

    def __init__(self, session: "Session", shipper: "Shipper", options: PoolOptions) -> None:
        self._session = session
        self._shipper = shipper
        self._options = options
        self._condition = threading.Condition()
        self._waiting: deque[Submission] = deque()
        self._starting: list[Submission] = []
        self._closed: CloudparError | None = None
        self._thread: threading.Thread | None = None
        session.acknowledgements.on_added = self.nudge

    def submit(self, submission: Submission) -> None:
        """Queue a task for the next package.

        Raises:
            CloudparError: The pool is closed or has failed.
            RuntimeError: The thread cannot be started.
        """
        with self._condition:
            if self._closed is not None:
                raise self._closed
            self._wake()
            self._waiting.append(submission)

    def nudge(self) -> None:
        """Tell the thread that there is a package to acknowledge."""
        if self._thread is None or len(self._session.acknowledgements) in {1, ACKNOWLEDGE_COUNT}:
            # Even if no thread can start, reading a result must not fail. The pool then acknowledges the package when
            # the pool ends.
            with self._condition, contextlib.suppress(RuntimeError):
                self._wake()

    def _wake(self) -> None:
        if self._thread is None and self._closed is None:
            thread = threading.Thread(target=self._run, name="cloudpar-start", daemon=True)
            thread.start()
            self._thread = thread
        self._condition.notify_all()

    def cancel_waiting(self) -> None:
        """Cancel the tasks that wait for the next package. A package that is just starting keeps its tasks."""
        with self._condition:
            waiting = list(self._waiting)
        for submission in waiting:
            submission.future.cancel()

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until each submitted task is in a package, has failed, or was cancelled; or until the batcher is closed.

        `timeout_s` limits the wait, in seconds; None means no limit.
        """
        with self._condition:
            self._condition.wait_for(
                lambda: self._closed is not None or not (self._waiting or self._starting), timeout_s
            )

    def close(self, error: CloudparError) -> None:
        """End the thread; tasks that are still queued fail with the error."""
        with self._condition:
            self._closed = self._closed or error
            left = [*self._waiting]
            self._waiting.clear()
            self._condition.notify_all()
        for submission in left:
            if submission.future.set_running_or_notify_cancel():
                resolve(submission.future, None, error)

    def _run(self) -> None:
        while (batch := self._next()) is not None:
            if batch:
                self._start(batch)
                with self._condition:
                    self._starting = []
                    self._condition.notify_all()
            else:
                with contextlib.suppress(Exception):  # the master deletes unacknowledged packages some days later
                    self._session.acknowledgements.send()

    def _next(self) -> list[Submission] | None:
        """Return the tasks to start now; an empty list when it is time to acknowledge; None at the end."""
        with self._condition:
            while not self._waiting and self._closed is None:
                pending = len(self._session.acknowledgements)
                if pending >= ACKNOWLEDGE_COUNT:
                    return []
                if not self._condition.wait(ACKNOWLEDGE_S if pending else None) and pending:
                    return []
            if self._closed is not None:
                return None
            size = 0
            while self._waiting and size < BATCH_BYTES and len(self._starting) < BATCH_TASKS:
                submission = self._waiting.popleft()
                self._starting.append(submission)
                size += len(submission.data)
            return self._starting

    def _start(self, batch: list[Submission]) -> None:
        started = [each for each in batch if each.future.set_running_or_notify_cancel()]
        for group in groups(started, mixed=self._options.initializer is None):
            self._start_package(group)

    def _start_package(self, batch: list[Submission]) -> None:
        if not batch:
            return
        futures = [submission.future for submission in batch]
        receiver = FutureReceiver(futures, self._session)
        try:
            order = order_for(batch, self._shipper, self._options, self._session.package_key())
            self._session.start(order, receiver)
        except TooLarge as error:
            if len(batch) == 1:
                receiver.fail(error)
                return
            receiver.started(None)
            middle = len(batch) // 2  # one bad task must not fail the others
            for half in batch[:middle], batch[middle:]:
                self._start_package([each for each in half if not each.future.done()])
        except Exception as error:  # noqa: BLE001 - an exception would end the thread, and so fail all other tasks
            receiver.fail(error)


def groups(batch: list[Submission], *, mixed: bool = True) -> list[list[Submission]]:
    """Group tasks that can share a package: all pickled tasks together, and the tasks of each reference.

    If not `mixed`, only tasks of one function share a package. Otherwise each task would carry its function, and with
    it the initializer, which would then run for each task.
    """
    found: dict[str | None, list[Submission]] = {}
    for submission in batch:
        code = submission.code
        found.setdefault(code.reference if mixed else code.hash, []).append(submission)
    return list(found.values())


def order_for(batch: list[Submission], shipper: "Shipper", options: PoolOptions, package_key: PackageKey) -> Order:
    """Return the order for one package of submitted tasks, whether their functions are the same or not.

    Raises:
        TooLarge: The tasks together exceed a limit of packages, or their code exceeds the limit of task code.
    """
    code = batch[0].code
    same = all(submission.code.hash == code.hash for submission in batch)
    packer = Packer(package_key.seals)
    for submission in batch:
        packer.needs.modules |= submission.needs.modules
        packer.needs.parts |= submission.needs.parts
        packer.append_serialized(submission.data if same else _pair(submission))
    return Order(
        code=shipper.ship(code if same else _call_code(), packer.needs),
        packed=Packed(len(batch), packer.finish(), packer.needs),
        call="args_kwargs" if same else "args",
        options=MapOptions().completed(options),
        serialize_s=sum(submission.serialize_s for submission in batch),
        package_key=package_key,
        places=Places(),
    )


def _pair(submission: Submission) -> bytes:
    pair = PickledCall(pickle.loads, submission.code.data), PickledCall(pickle.loads, submission.data)
    return pickle.dumps(pair, PROTOCOL)


@cache
def _call_code() -> Code:
    """Return task code that calls the function that each task's data contains."""

    def call(function: Callable[..., Any], arguments: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:
        return function(*arguments[0], **arguments[1])

    call.__module__ = "__main__"  # so that cloudpickle sends it by value: a worker may not have the SDK
    call.__qualname__ = "several functions"
    return serialize(call)
