"""One client's work with one master: starting packages, awaiting and acknowledging them."""

import contextlib
import secrets
from collections.abc import Callable, Iterator

from cloudpar.errors import CloudparError, NotFound
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import Hello, HelloReply, StartTasks
from cloudpar_protocol.payloads import TaskResult
from cloudpar_protocol.seals import Seals, is_sealed
from cloudpar_protocol.transport.retries import Stopped

from .acknowledgements import Acknowledgements
from .awaiter import Awaiter
from .cancellations import Cancellations
from .code_uploads import CodeUploads
from .connection import Connection
from .downloads import Downloads
from .nesting import Nesting
from .open_packages import OpenPackages
from .orders import Order
from .package import Package
from .package_handle import PackageHandle, Receiver
from .package_key import PackageKey, new_package_key, seals_of
from .session_end import SessionEnd
from .storage_watch import StorageWatch
from .task_lengths import TaskLengths
from .uploads import task_data

RECOVER_S = 2.0
"""How long to repeat the request for a package's id after Ctrl-C has interrupted the package's start, in seconds."""


class Session:
    """All packages that are under way between this client and its master. Any thread may use it.

    Attributes:
        id: The session's id.
        end: Whether and why the session has ended.
        packages: The packages that have unread results.
        acknowledgements: The packages that the client no longer needs.
        cancellations: Cancels packages.
    """

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
        self.end = SessionEnd()
        self.packages = OpenPackages()
        self.acknowledgements = Acknowledgements(connection)
        self.cancellations = Cancellations(connection, self.id, self.end)
        self._code = CodeUploads(connection)
        self._lengths = TaskLengths(own_master=own_master)
        self._show = show
        self._watch = watch
        self._threads_per_task = threads_per_task
        self._downloads = Downloads(connection, self.id)
        self._nesting = Nesting(own_master=own_master)
        storage = StorageWatch(connection.folder, connection.policy.patience_s, self.packages.__len__)
        self._awaiter = Awaiter(connection, self._downloads, self.id, self._nesting, storage)
        self._who: HelloReply | None = None

    def hello(self) -> HelloReply:
        """Ask the master for the role and the account of this token.

        Raises:
            CloudparError: The master refuses the token or does not answer, or the session has ended.
        """
        with self.end:
            self._who = self.connection.call(routes.HELLO, Hello())
            return self._who

    def package_key(self) -> PackageKey:
        """Make the key of a new package, with the seals for its code and data.

        Raises:
            CloudparError: The session must first ask the master for the seal key, and this request fails.
        """
        if self.connection.folder is not None:
            return PackageKey(secrets.token_hex(16), None, self.connection.folder)  # unsealed: docs/adr/0026
        return new_package_key(self._who or self.hello())

    def start(self, order: Order, receiver: Receiver) -> PackageHandle:
        """Start a package; the receiver gets its results. This method closes the order's data, even after an error.

        Raises:
            CloudparError: The master refuses the package or does not answer, an upload fails, the package would be
                nested too deeply, or the session has ended.
            RuntimeError: The thread that awaits results cannot be started.
        """
        with contextlib.closing(order.packed), self.end:
            self._awaiter.get_ready()
            message = self._message(order)
            handle = self._handle(order, receiver)
            with self._starting(handle):
                try:
                    try:
                        reply = self.connection.call(routes.START_TASKS, message)
                    except NotFound:
                        if message.code.blob is None:
                            raise
                        # The store may have removed the code since an earlier package used it.
                        self._code.forget(order.code.hash)
                        message = self._message(order)
                        reply = self.connection.call(routes.START_TASKS, message)
                    handle.package.started(reply.package_id)
                except KeyboardInterrupt:
                    # The master may or may not have started the package. Repeat the request to get the package's id, so
                    # that the package can be cancelled.
                    with contextlib.suppress(CloudparError, Stopped):
                        reply = self.connection.call(routes.START_TASKS, message, allowance_s=RECOVER_S)
                        handle.package.started(reply.package_id)
                    raise
            return handle

    def _message(self, order: Order) -> StartTasks:
        tasks = order.packed.n
        # A package that is known to be little work is sent as one chunk. For other packages the master sizes the
        # chunks.
        whole = tasks if self._lengths.are_short(order.code.hash, tasks) else None
        return order.message(
            self._code.task_code(order.code),
            task_data(self.connection, order.packed.data),
            session=self.id,
            chunksize=order.options.chunksize or whole,
            threads_per_task=self._threads_per_task,
            depth=self._nesting.depth(),
        )

    def _handle(self, order: Order, receiver: Receiver) -> PackageHandle:
        return PackageHandle(
            Package(order.packed.n, codec=order.code.codec),
            receiver,
            serialize_s=order.serialize_s,
            show=self._show,
            on_news=self._news,
            seals=order.package_key.seals,
            places=order.places,
            name=order.code.name,
            code_hash=order.code.hash,
        )

    @contextlib.contextmanager
    def _starting(self, handle: PackageHandle) -> Iterator[None]:
        """Return a context in which a package starts. If the start succeeds, the session awaits the package's results.

        When it opens, the context reports to the task's executor that the task waits. It opens before the request,
        because the master may delay the request until other packages end.
        """
        self._nesting.wait_started(handle)
        self._awaiter.start_requested()
        try:
            yield
        finally:
            started = bool(handle.id)
            if started:
                self._open(handle)
            else:
                self._nesting.wait_ended(handle)
            self._awaiter.start_done(handle if started else None)

    def attach(self, package_id: str, receiver: Receiver) -> PackageHandle:
        """Request news of an existing package; the receiver gets its results.

        Raises:
            CloudparError: The package is sealed, and the request for its key fails or brings no key.
            RuntimeError: The thread that awaits results cannot be started.
        """
        self._awaiter.get_ready()
        package = Package(0)
        package.started(package_id)
        seals = self._seals_of(package_id)
        handle = PackageHandle(package, receiver, on_news=self._news, seals=seals, attached=True)
        self._open(handle)
        self._awaiter.add(handle)
        return handle

    def _seals_of(self, package_id: str) -> Seals | None:
        """Return the seals of an existing package; None if the package is not sealed."""
        if not is_sealed(package_id):
            return None
        # The session may know the key of new packages, but this package may have another key: an operator may have
        # rotated the key.
        with self.end:
            return seals_of(self.connection.call(routes.HELLO, Hello(package_id=package_id)), package_id)

    def _open(self, handle: PackageHandle) -> None:
        self.packages.add(handle)
        handle.receiver.started(handle)

    def forget(self, handle: PackageHandle) -> None:
        """Stop requesting news of a package without cancelling it, so that another process can read its results."""
        self._awaiter.drop(handle)
        self.packages.remove(handle)
        handle.drop_values()

    def read(self, handle: PackageHandle) -> None:
        """Stop requesting news of a package that was read or is unwanted, and record that it must be acknowledged.

        When the master gets the acknowledgement, it cancels unfinished tasks and frees the package's storage.
        """
        self.forget(handle)
        self.acknowledgements.add(handle.id)

    def drop(self, handle: PackageHandle) -> None:
        """Let the tasks of a package run to their end without a reader. Then do what `read` does."""
        if not self.packages.runs_unwanted(handle):
            self.read(handle)

    def are_short(self, handle: PackageHandle, tasks: int) -> bool:
        """Whether this many further tasks of a package's function are known to be little work; see `TaskLengths`."""
        return self._lengths.are_short(handle.code_hash, tasks)

    def fail(self, error: CloudparError) -> None:
        """End the session with an error, because the pool has lost its master."""
        self.end.reason = error
        self.close()
        for handle in self.packages.unfinished():
            handle.lost(error)

    def close(self) -> None:
        """End the threads and all requests."""
        self.end.reached = True
        self.connection.close()
        self._awaiter.close()
        self._downloads.close()

    def _news(self, handle: PackageHandle) -> None:
        self._watch(handle)
        if handle.ended.is_set():
            self._lengths.measured(handle.code_hash, handle.package.progress.mean_us)
            if self.packages.ended(handle):
                self.read(handle)
