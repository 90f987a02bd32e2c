"""One client's work with one master: starting packages, awaiting and acknowledging them."""

import contextlib
import io
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from cloudpar._arguments.map_options import MapOptions
from cloudpar._arguments.retry import ONCE
from cloudpar._formatting.tracebacks import ShortTracebacks
from cloudpar._serialization.packing import Blob, Packed
from cloudpar._serialization.task_code import Code
from cloudpar.errors import CloudparError
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import (
    Acknowledge,
    AwaitTasks,
    CancelTasks,
    CancelTasksReply,
    Cursor,
    Hello,
    HelloReply,
    StartTasks,
)
from cloudpar_protocol.limits import BULK_ITEMS, HOLD_S, INLINE_CODE_BYTES
from cloudpar_protocol.payloads import (
    BlobData,
    CallStyle,
    InlineData,
    Range,
    RangeData,
    TaskCode,
    TaskData,
    TaskResult,
)
from cloudpar_protocol.seals import Seals, is_sealed
from cloudpar_protocol.transport.retries import Stopped

from .awaiter import Awaiter
from .connection import Connection
from .downloads import Downloads
from .nesting import Nesting
from .package import Package
from .package_handle import PackageHandle, Receiver
from .package_key import PackageKey, new_package_key, seals_of
from .places import Places
from .storage_watch import StorageWatch
from .task_lengths import TaskLengths
from .uploads import upload

T = TypeVar("T")

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"

SETTLE_PAUSE_S = 0.05
RECOVER_S = 2.0


@dataclass(frozen=True)
class Order:
    """A package to start: its task code, its task data, and how the code is called with the data."""

    code: Code
    packed: Packed
    call: CallStyle
    options: MapOptions
    serialize_s: float
    package_key: PackageKey
    places: Places


class Session:
    """All packages that are under way between this client and its master. Any thread may use it."""

    def __init__(
        self,
        connection: Connection,
        show: Callable[[TaskResult], None] | None = None,
        watch: Callable[[PackageHandle], None] = lambda _: None,
        threads_per_task: int | None = None,
    ) -> None:
        own_master = connection.folder is not None
        self.id = secrets.token_hex(8)
        self.connection = connection
        self.failure: CloudparError | None = None
        self.closed = False
        self.last: PackageHandle | None = None
        self.on_read: Callable[[], None] = lambda: None
        self._lengths = TaskLengths(own_master=own_master)
        self._show = show
        self._watch = watch
        self._threads_per_task = threads_per_task
        self._downloads = Downloads(connection, self.id)
        self._nesting = Nesting(own_master=own_master)
        storage = StorageWatch(connection.folder, connection.policy.patience_s, lambda: len(self._open))
        self._awaiter = Awaiter(connection, self._downloads, self.id, self._nesting, storage)
        self._condition = threading.Condition()
        self._open: dict[PackageHandle, None] = {}
        self._unwanted: set[PackageHandle] = set()
        self._read: list[str] = []
        self._who: HelloReply | None = None

    def check(self) -> None:
        """Raise the error that ended this session, if there is such an error."""
        if self.failure is not None:
            raise self.failure

    def hello(self) -> HelloReply:
        """Ask the master for the role and the account of this token.

        Raises:
            CloudparError: The master refuses the token or does not answer, or the session has ended.
        """
        self._who = self._guard(lambda: self.connection.call(routes.HELLO, Hello()))
        return self._who

    def package_key(self) -> PackageKey:
        """Make the key of a new package, with the seals for its code and data.

        Raises:
            CloudparError: The session must first ask the master for the seal key, and this request fails.
        """
        if self.connection.folder is not None:
            return PackageKey(secrets.token_hex(16), None, self.connection.folder)  # see docs/adr/0026
        return new_package_key(self._who or self.hello())

    def start(self, order: Order, receiver: Receiver) -> PackageHandle:
        """Start a package; the receiver gets its results. The order's data is closed in any case.

        Raises:
            CloudparError: The master refuses the package or does not answer, an upload fails, the package would be
                nested too deeply, or the session has ended.
            RuntimeError: The thread that awaits results cannot be started.
        """
        try:
            return self._guard(lambda: self._start(order, receiver))
        finally:
            order.packed.close()

    def _start(self, order: Order, receiver: Receiver) -> PackageHandle:
        self._awaiter.get_ready()
        code, data = self._code(order.code), self._data(order.packed.data)
        key, seals, _ = order.package_key
        options, retry, tasks = order.options, order.options.retry or ONCE, order.packed.n
        # A package that is known to be little work is sent as one chunk. For other packages the master sizes the
        # chunks.
        chunksize = options.chunksize or (tasks if self._lengths.are_short(order.code.hash, tasks) else None)
        message = StartTasks(
            idempotency_key=key, session=self.id, name=order.code.name, n=tasks,
            code=code, data=data, call=order.call, codec=order.code.codec, python=PYTHON,
            chunksize=chunksize, task_timeout_s=options.task_timeout_s,
            retries=retry.retries, retry_on=list(retry.names), threads_per_task=self._threads_per_task,
            depth=self._nesting.depth(),
            seal=None if seals is None else seals.code(
                code, data, call=order.call, codec=order.code.codec, python=PYTHON, tasks=tasks
            ),
        )  # fmt: skip
        package = Package(tasks, codec=order.code.codec)
        handle = PackageHandle(
            package,
            receiver,
            serialize_s=order.serialize_s,
            show=self._show,
            on_news=self._news,
            seals=seals,
            places=order.places,
            name=order.code.name,
            code_hash=order.code.hash,
        )
        # This comes before the request, because the master may delay the request until other packages end.
        self._nesting.begins_to_wait(handle)
        self._awaiter.start_begins()
        begun = False
        try:
            package.started(self.connection.call(routes.START_TASKS, message).package_id)
            begun = True
        except KeyboardInterrupt:
            # The master may or may not have started the package. Repeat the request to get the package's id, so that
            # the package can be cancelled.
            with contextlib.suppress(CloudparError, Stopped):
                package.started(self.connection.call(routes.START_TASKS, message, allowance_s=RECOVER_S).package_id)
                begun = True
            raise
        finally:
            if begun:
                self._begin(handle)
            else:
                self._nesting.ends_to_wait(handle)
            self._awaiter.start_ends(handle if begun else None)
        return handle

    def _code(self, code: Code) -> TaskCode:
        if code.reference is not None:
            return TaskCode(hash=code.hash, reference=code.reference)
        if len(code.data) <= INLINE_CODE_BYTES:
            return TaskCode(hash=code.hash, inline=code.data)
        blob = Blob(io.BytesIO(code.data), len(code.data))
        return TaskCode(hash=code.hash, blob=upload(self.connection, "code", blob, code.hash))

    def _data(self, data: RangeData | InlineData | Blob) -> TaskData:
        if not isinstance(data, Blob):
            return data
        return BlobData(blob=upload(self.connection, "data", data))

    def _guard(self, request: Callable[[], T]) -> T:
        try:
            with ShortTracebacks():
                return request()
        except Stopped:
            raise self.failure or CloudparError("the pool was shut down meanwhile") from None

    def attach(self, package_id: str, receiver: Receiver) -> PackageHandle:
        """Ask for news of an existing package; the receiver gets its results.

        Raises:
            CloudparError: The package is sealed, and the request for its key fails or brings no key.
            RuntimeError: The thread that awaits results cannot be started.
        """
        self._awaiter.get_ready()
        package = Package(0)
        package.started(package_id)
        seals = self._seals_of(package_id)
        handle = PackageHandle(package, receiver, on_news=self._news, seals=seals, attached=True)
        self._begin(handle)
        self._awaiter.add(handle)
        return handle

    def _seals_of(self, package_id: str) -> Seals | None:
        """Return the seals of an existing package; None if the package is not sealed."""
        if not is_sealed(package_id):
            return None
        # The session may know the key of new packages, but this package may have another key: an operator may have
        # rotated the key.
        who = self._guard(lambda: self.connection.call(routes.HELLO, Hello(package_id=package_id)))
        return seals_of(who, package_id)

    def _begin(self, handle: PackageHandle) -> None:
        with self._condition:
            self._open[handle] = None
        handle.receiver.started(handle)

    def cancel(
        self,
        package_id: str,
        ranges: list[Range] | None = None,
        *,
        only_queued: bool = False,
        allowance_s: float | None = None,
    ) -> CancelTasksReply:
        """Cancel a package or some of its tasks; return what the master has cancelled.

        Args:
            package_id: The package.
            ranges: The tasks to cancel; None means all tasks.
            only_queued: Cancel only tasks that no worker has taken.
            allowance_s: How long to try, in seconds, instead of the pool's patience.

        Raises:
            CloudparError: The master refuses the request or does not answer, or the session has ended.
        """
        message = CancelTasks(package_id=package_id, ranges=ranges, only_queued=only_queued)
        return self._guard(lambda: self.connection.call(routes.CANCEL_TASKS, message, allowance_s=allowance_s))

    def settled_us(self, handle: PackageHandle, until: float) -> int:
        """Wait until a package's charge is final, or until a time of the monotonic clock; return the charge.

        Returns:
            The charge in microseconds; 0 if the master no longer has the package.

        Raises:
            CloudparError: The master refuses the request or does not answer, or the session has ended.
        """
        while True:
            left_s = max(0.0, until - time.monotonic())
            cursor = Cursor(package_id=handle.id, cursor=handle.package.cursor)
            message = AwaitTasks(session=f"{self.id}-charge", packages=[cursor], hold_s=min(left_s, HOLD_S))
            reply = self._guard(
                lambda: self.connection.call(routes.AWAIT_TASKS, message, hold_s=HOLD_S, allowance_s=left_s)  # noqa: B023 - called before the variables change
            )
            if not reply.packages:
                return 0
            status = reply.packages[0]
            if status.settled or not left_s:
                return status.progress.charged_us
            time.sleep(min(left_s, max(reply.retry_after_s, SETTLE_PAUSE_S)))

    def forget(self, handle: PackageHandle) -> None:
        """Stop asking for news of a package without cancelling it, so that another process can read its results."""
        self._awaiter.drop(handle)
        with self._condition:
            self._open.pop(handle, None)
            self._condition.notify_all()

    def read(self, handle: PackageHandle) -> None:
        """Stop asking for news of a package that was read or is unwanted, and record that it must be acknowledged.

        When the master gets the acknowledgement, it cancels unfinished tasks and frees the package's storage.
        """
        self.forget(handle)
        with self._condition:
            self._read.append(handle.id)
        self.on_read()

    def drop(self, handle: PackageHandle) -> None:
        """Let the tasks of a package run to their end without a reader. Then do what `read` does."""
        with self._condition:
            if not handle.ended.is_set():
                self._unwanted.add(handle)
                return
        self.read(handle)

    def acknowledge(self) -> None:
        """Acknowledge the packages that `read` has recorded. If a request fails, the remaining ones are dropped.

        Raises:
            CloudparError: The master refuses or does not answer.
            Stopped: The session is closed.
        """
        with self._condition:
            package_ids, self._read = self._read, []
        for first in range(0, len(package_ids), BULK_ITEMS):
            message = Acknowledge(package_ids=package_ids[first : first + BULK_ITEMS])
            self.connection.call(routes.ACKNOWLEDGE, message)

    @property
    def to_acknowledge(self) -> int:
        """How many packages `read` has recorded that are not acknowledged yet."""
        return len(self._read)

    def are_short(self, handle: PackageHandle, tasks: int) -> bool:
        """Whether this many further tasks of a package's function are known to be little work; see `TaskLengths`."""
        return self._lengths.are_short(handle.code_hash, tasks)

    def open_packages(self) -> list[PackageHandle]:
        """Return the open packages: those whose results were not all read, and which the session has not dropped."""
        with self._condition:
            return list(self._open)

    def unfinished(self) -> list[PackageHandle]:
        """Return those of the open packages that have not ended."""
        return [handle for handle in self.open_packages() if not handle.ended.is_set()]

    def ours(self) -> list[PackageHandle]:
        """Return the packages that this pool started and that have not ended."""
        return [handle for handle in self.unfinished() if not handle.attached]

    @contextlib.contextmanager
    def reading(self, handle: PackageHandle) -> Iterator[None]:
        """While this context is open, the pool's shutdown waits for the package, even if the handle is attached."""
        with self._condition:
            handle.readers += 1
        try:
            yield
        finally:
            with self._condition:
                handle.readers -= 1
                self._condition.notify_all()

    def wait(self) -> None:
        """Wait until every open package has ended, except attached packages that the program is not reading."""
        with self._condition:
            self._condition.wait_for(lambda: not any(handle.holds for handle in self._open))

    def fail(self, error: CloudparError) -> None:
        """End the session with an error, because the master is lost for good."""
        self.failure = error
        self.close()
        for handle in self.unfinished():
            handle.lost(error)

    def close(self) -> None:
        """End the threads and all requests."""
        self.closed = True
        self.connection.close()
        self._awaiter.close()
        self._downloads.close()

    def _news(self, handle: PackageHandle) -> None:
        self._watch(handle)
        if handle.ended.is_set():
            with self._condition:
                self.last = handle
                self._lengths.measured(handle.code_hash, handle.package.progress.mean_us)
                unwanted = handle in self._unwanted
                self._unwanted.discard(handle)
                self._condition.notify_all()
            if unwanted:
                self.read(handle)
