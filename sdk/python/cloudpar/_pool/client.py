"""The part of a pool that talks to the master.

It does all of the pool's work, except that `Lifetime` starts and stops the pool's processes.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakSet

from cloudpar._arguments.map_options import MapOptions
from cloudpar._arguments.pool_options import PoolOptions
from cloudpar._arguments.retry import ONCE
from cloudpar._client.cancellations import SETTLE_S
from cloudpar._client.connection import Connection
from cloudpar._client.package_feed import PackageFeed
from cloudpar._client.package_handle import PackageHandle
from cloudpar._client.package_search import COMPLETE, find
from cloudpar._client.session import Session
from cloudpar._display.output import shower
from cloudpar._display.progress import Bars
from cloudpar._serialization import msgpack_data
from cloudpar._serialization.call_needs import CallNeeds, PartCache
from cloudpar._serialization.diagnosis import Call
from cloudpar._serialization.local_modules import LOCAL_MODULES
from cloudpar._serialization.pickling import pickled, refusal
from cloudpar._serialization.project.shipment import Shipper
from cloudpar._serialization.task_code import Code, CodeCache, check_function, function_name, serialize
from cloudpar.attachment import Attachment
from cloudpar.effects import Capture, capture
from cloudpar.errors import CloudparError
from cloudpar.future import FutureReceiver, TaskFuture
from cloudpar.map_results import MapResults, UnorderedResults
from cloudpar.snapshots import Repetitions, Snapshot
from cloudpar_protocol.payloads import CallStyle
from cloudpar_protocol.transport.retries import Stopped

from .initialized_code import InitializedCode
from .submit_batcher import Submission, SubmitBatcher

log = logging.getLogger("cloudpar")


class Client:
    """One client of one master. Any thread may use it."""

    def __init__(self, connection: Connection, options: PoolOptions) -> None:
        bars = Bars(options.progress, connection.endpoint)
        self.session = Session(connection, shower(options.output), bars.update, options.threads_per_task)
        self._options = options
        self._shipper = Shipper(here=connection.folder is not None)
        self._batcher = SubmitBatcher(self.session, self._shipper, options)
        self._codes: CodeCache | InitializedCode = CodeCache()
        if options.initializer is not None:
            self._codes = InitializedCode(options.initializer, options.initargs)
        self._parts = PartCache()
        self._repetitions = Repetitions()
        self._maps: WeakSet[MapResults[Any]] = WeakSet()

    def submit(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> TaskFuture[Any]:
        """Queue a task and return its future.

        A thread sends the task to the master within milliseconds, together with other tasks that are submitted
        meanwhile.

        Raises:
            SerializationError: The function or an argument cannot be serialized.
            TooLarge: The function, with what it captures, exceeds the limit of task code.
            TypeError: The function is not callable, or is an async function.
            CloudparError: The pool has failed, or is closed.
            RuntimeError: The thread that starts packages cannot be started.
        """
        self.session.end.check()
        started_at = time.perf_counter()
        code = self._code(function)
        call, needs = Call(code.name, args, kwargs), CallNeeds(self._parts)
        if code.codec == "msgpack":
            data = msgpack_data.dumps_call(call)
        else:
            data = pickled(call, f"the arguments of {code.name}", needs).data
            self._repetitions.of_arguments(code, data)
        needs.modules |= code.modules
        future: TaskFuture[Any] = TaskFuture(self._interrupt_futures)
        self._batcher.submit(Submission(future, code, data, needs, time.perf_counter() - started_at))
        return future

    def _code(self, function: Any) -> Code:
        if isinstance(function, Code):
            return function
        if isinstance(self._codes, InitializedCode):
            return self._codes.get(function, never_changes=isinstance(function, Snapshot))
        if isinstance(function, Snapshot):
            return function.code
        code = self._codes.get(function)
        self._repetitions.of_code(code)
        return code

    def feed(
        self, function: Any, values: Iterable[Any], call: CallStyle, options: MapOptions, *, keep: object = None
    ) -> PackageFeed:
        """Return the object that starts the packages of a map. The object keeps `keep` alive.

        With `buffersize` a map may have several packages, which start one after the other.
        """
        return PackageFeed(
            self.session, self._shipper, code_of=self._code, function=function, values=values, call=call,
            options=options.completed(self._options), keep=keep,
        )  # fmt: skip

    def results(self, feed: PackageFeed, *, ordered: bool) -> MapResults[Any]:
        """Return the results of a map. The caller must have called `feed.refill` once."""
        results: MapResults[Any] = (MapResults if ordered else UnorderedResults)(feed)
        self._maps.add(results)
        return results

    def parallel_for(self, start: int, stop: int, body: Callable[[int], object], task_timeout_s: float | None) -> None:
        """Run a loop's body as tasks, and copy back its writes. Raises like `MapMethods.parallel_for`."""
        check_function(body)
        body = body.function if isinstance(body, Snapshot) else body
        if start >= stop:
            return
        captured = _captured(body)
        options = MapOptions(task_timeout_s=task_timeout_s, retry=ONCE)
        feed = self.feed(_loop_code(captured, function_name(body)), range(start, stop), "value", options)
        feed.refill()
        results = UnorderedResults[bytes | None](feed)
        merge = captured.merge()
        try:
            for number, writes in results.indexed():
                merge.add(start + number, writes)
        finally:
            results.close()
        merge.commit()

    def attach(self, package_id: str, *, keep: object = None) -> Attachment[Any]:
        """Return an attachment to a package, found by its id or the id's first characters.

        The attachment keeps `keep` alive.

        Raises:
            NotFound: `package_id` is shorter than an id. Among the ids of the newest 1,000 packages, none starts with
                it, or several do.
            ValueError: `package_id` is empty.
            CloudparError: The pool has failed, the master refuses a request or does not answer, or the package is
                sealed and the master sends no seal key.
            RuntimeError: The thread that awaits results cannot be started.
        """
        self.session.end.check()
        if len(package_id) < COMPLETE:
            package_id = find(self.session.connection, package_id).package_id
        return Attachment(self.session, package_id, keep=keep)

    def _interrupt_futures(self) -> None:
        self._batcher.cancel_waiting()
        self._batcher.wait(SETTLE_S)
        futures = [each for each in self.session.packages.ours() if isinstance(each.receiver, FutureReceiver)]
        self.session.cancellations.interrupt(futures)

    def interrupt(self) -> None:
        """Cancel all packages that this pool started, print what they have cost, and stop reading attached packages."""
        self._batcher.cancel_waiting()
        self._batcher.wait(SETTLE_S)
        self.session.cancellations.interrupt(self.session.packages.ours())
        for handle in self.session.packages.unfinished():
            _leave(handle)

    def cancel_queued(self) -> None:
        """Cancel the tasks that no worker has taken.

        Raises:
            CloudparError: The master refuses a request or does not answer, or the pool has failed.
        """
        self._batcher.cancel_waiting()
        self._batcher.wait()
        for handle in self.session.packages.ours():
            reply = self.session.cancellations.cancel(handle.id, only_queued=True)
            if isinstance(handle.receiver, FutureReceiver):
                handle.receiver.set_cancelled(reply.cancelled)

    def drop_failed_maps(self) -> None:
        """Cancel the unfinished tasks of each map whose last call of `next` raised the error of a task or a package.

        If `next` raised because of the map's timeout, the map's tasks continue.
        """
        for results in list(self._maps):
            if results.raised:
                results.close()

    def wait(self) -> None:
        """Wait until all tasks of this pool, and all attached packages that the program is reading, have ended."""
        self._batcher.wait()
        self.session.packages.wait()

    def detach(self) -> list[str]:
        """Stop reading the open packages, without cancelling them, and return their ids.

        A package is open if this client has not read every result of it, or if the client has attached to it and has
        not acknowledged it.
        """
        self._batcher.wait()
        packages = self.session.packages.handles()
        for handle in packages:
            self.session.forget(handle)
            _leave(handle)
        return [handle.id for handle in packages]

    def fail(self, error: CloudparError) -> None:
        """Fail all unfinished tasks, because the pool has lost its master."""
        self.session.fail(error)
        self._batcher.close(error)

    def close(self, *, acknowledge: bool) -> None:
        """End all threads and connections.

        If `acknowledge` is True, first tell the master that the results of this pool's packages are no longer needed.
        """
        self._batcher.close(CloudparError("the pool was shut down before this task was started"))
        if acknowledge:
            # If an acknowledgement fails, the master deletes the package some days later.
            for handle in self.session.packages.handles():
                if not handle.attached:  # other processes may still read an attached package
                    self.session.read(handle)
            with contextlib.suppress(CloudparError, Stopped):
                self.session.acknowledgements.send()
        self.session.close()
        for handle in self.session.packages.unfinished():
            _leave(handle)


def _captured(body: Callable[[int], object]) -> Capture:
    try:
        with LOCAL_MODULES.by_value(everything=True):  # so that writes into globals of the user's modules are also seen
            return capture(body)
    except Exception as error:  # noqa: BLE001 - users' reducers may raise anything
        refused = refusal(error, body, function_name(body))
        try:
            with LOCAL_MODULES.by_value():
                captured = capture(body)
        except Exception:  # noqa: BLE001 - the error of the first try says more
            raise refused from error
        log.warning(
            "cloudpar: writes of this parallel_for's body into globals of your modules are lost, since these modules "
            "travel by name; all other writes are copied back: %s", error,
        )  # fmt: skip
        return captured


def _loop_code(captured: Capture, name: str) -> Code:
    code = serialize(captured.code)
    return code._replace(name=name, modules=code.modules | captured.code.modules)


def _leave(handle: PackageHandle) -> None:
    """If the package is attached, fail its readers, because this pool gets no more results for them."""
    if handle.attached:
        handle.left(CloudparError(f"the pool ended before package {handle.id} did: attach to it by another pool"))
