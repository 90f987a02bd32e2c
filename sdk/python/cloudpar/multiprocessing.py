"""`multiprocessing.Pool` on the executors of a master: a program changes one import.

Example:
    >>> from cloudpar.multiprocessing import Pool
    >>> with Pool(processes=2) as pool:
    ...     pool.map(abs, [-1, 2, -3])
    ...     pool.apply_async(pow, (2, 10)).get(timeout=60)
    [1, 2, 3]
    1024
"""

import builtins
import queue
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from concurrent.futures import CancelledError, Future
from multiprocessing import TimeoutError  # noqa: A004 - programs import it from the module of their pool
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from . import pool as pools
from ._arguments.argument_types import whole_or_none
from .map_results import MapResults

if TYPE_CHECKING:
    from .future import TaskFuture

__all__ = ["AsyncResult", "IMapIterator", "Pool", "TimeoutError"]

T = TypeVar("T")

BUFFER = 1_000
"""How many calls `imap` has under way at most. An iterable may be endless."""


class AsyncResult(Generic[T]):
    """The result of one call, or the list of results of a map, which may still be under way."""

    def __init__(
        self,
        future: "Future[T]",
        callback: Callable[[T], object] | None,
        error_callback: Callable[[BaseException], object] | None,
    ) -> None:
        self._future = future
        self._ended = threading.Event()

        def ended(future: "Future[T]") -> None:
            try:
                error = CancelledError() if future.cancelled() else future.exception()
                if error is None and callback is not None:
                    callback(future.result())
                if error is not None and error_callback is not None:
                    error_callback(error)
            finally:
                self._ended.set()  # only now, since programs read after `get` what the callback has written

        future.add_done_callback(ended)

    def get(self, timeout: float | None = None) -> T:
        """Return the result.

        Raises:
            TimeoutError: There is no result after `timeout` seconds. This is `multiprocessing.TimeoutError`.
            Exception: The exception that the call raised.
        """
        self.wait(timeout)
        if not self.ready():
            raise TimeoutError
        return self._future.result()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the call has ended and its callback has returned, or until `timeout` seconds have passed."""
        self._ended.wait(timeout)

    def ready(self) -> bool:
        """Return whether the call has ended and its callback has returned."""
        return self._ended.is_set()

    def successful(self) -> bool:
        """Return whether the call has ended without an exception.

        Raises:
            ValueError: The call has not ended.
        """
        if not self.ready():
            raise ValueError(f"{self!r} not ready")
        return not self._future.cancelled() and self._future.exception() is None


class IMapIterator(Iterator[T]):
    """The results of `imap`. After the exception of a call, it goes on with the next result.

    An exception of the iterable comes after the results of the values before it.
    """

    def __init__(self, take: Callable[[float | None], T]) -> None:
        self._take = take

    def __next__(self) -> T:
        return self._take(None)

    def next(self, timeout: float | None = None) -> T:
        """Return the next result.

        Raises:
            TimeoutError: There is no result after `timeout` seconds. This is `multiprocessing.TimeoutError`.
            StopIteration: There are no more results.
            Exception: The exception that the call raised.
        """
        return self._take(timeout)


def _taking(results: MapResults[T]) -> Callable[[float | None], T]:
    def take(timeout: float | None) -> T:
        results._feed.deadline = None if timeout is None else time.monotonic() + timeout  # noqa: SLF001 - other readers of a map have one limit for all results
        try:
            return next(results)
        except builtins.TimeoutError as error:
            if results.raised:  # by the task
                raise
            raise TimeoutError from error

    return take


class _Stream:
    """Submits a call for each value that an iterator gives, in a thread, and gives the results."""

    def __init__(self, submit: Callable[[Any], "Future[Any]"], values: Iterator[Any], *, ordered: bool) -> None:
        self.stopped = False
        self._submit = submit
        self._values = values
        self._ordered = ordered
        self._room = threading.Semaphore(BUFFER)
        self._given: queue.SimpleQueue[Future[Any] | None] = queue.SimpleQueue()
        """The calls in the order of their results; None when the iterator has ended."""
        self._sent = self._taken = 0
        self._error: Exception | None = None
        self._at_end = False
        self._next: Future[Any] | None = None
        self.thread = threading.Thread(target=self._run, name="cloudpar imap", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            for value in self._values:
                self._room.acquire()
                if self.stopped:
                    break
                future = self._submit(value)
                self._sent += 1
                if self._ordered:
                    self._given.put(future)
                future.add_done_callback(self._ended)
        except Exception as error:  # noqa: BLE001 - the reader of the results gets it
            self._error = error
        self._given.put(None)

    def _ended(self, future: "Future[Any]") -> None:
        self._room.release()
        if not self._ordered:
            self._given.put(future)

    def take(self, timeout: float | None) -> Any:
        """Return the next result; raises like `IMapIterator.next`."""
        until = None if timeout is None else time.monotonic() + timeout
        try:
            while self._next is None:
                if self._at_end and self._taken == self._sent:
                    self._end()
                self._next = self._given.get(timeout=None if until is None else max(0.0, until - time.monotonic()))
                self._at_end = self._at_end or self._next is None
            if not self._next.done():
                wait_s = None if until is None else max(0.0, until - time.monotonic())
                self._next.exception(wait_s)
        except (queue.Empty, builtins.TimeoutError):
            raise TimeoutError from None
        except CancelledError:
            pass  # `result` raises it again
        future, self._next = self._next, None
        self._taken += 1
        return future.result()  # type: ignore[union-attr]  # the loop has ended

    def _end(self) -> None:
        error, self._error = self._error, None
        raise StopIteration if error is None else error


class Pool:
    """Has the methods of `multiprocessing.Pool`. The calls run on a `cloudpar.Pool`.

    Endpoint and token come from the environment or the profile, as for a `cloudpar.Pool`. Without them, the pool runs
    on this machine.

    Args:
        processes: The number of executors on this machine; by default one for each core.
        initializer: A function that each executor calls before its first call of a function.
        initargs: The arguments of the initializer.
        maxtasksperchild: Has no effect. An executor that needs too much memory is replaced.
        context: Has no effect. Executors do not come from a fork of this process.

    Raises:
        ValueError: `processes` is below 1.
        Exception: As `cloudpar.Pool`.
    """

    def __init__(
        self,
        processes: int | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: Iterable[Any] = (),
        maxtasksperchild: int | None = None,  # noqa: ARG002 - programs give it
        context: object = None,  # noqa: ARG002 - as above
    ) -> None:
        processes = whole_or_none("processes", processes)
        if processes is not None and processes < 1:
            raise ValueError("Number of processes must be at least 1")
        # Such programs often draw a bar of their own.
        self._pool = pools.Pool(workers=processes, initializer=initializer, initargs=initargs, progress=False)
        self._closed = self._terminated = False
        self._lock = threading.Lock()
        self._under_way: weakref.WeakSet[TaskFuture[Any] | MapResults[Any]] = weakref.WeakSet()
        self._streams: list[_Stream] = []
        self._readers: list[threading.Thread] = []

    def apply(self, func: Callable[..., T], args: Iterable[Any] = (), kwds: Mapping[str, Any] | None = None) -> T:
        """Return `func(*args, **kwds)`, which runs on an executor."""
        return self.apply_async(func, args, kwds).get()

    def apply_async(
        self,
        func: Callable[..., T],
        args: Iterable[Any] = (),
        kwds: Mapping[str, Any] | None = None,
        callback: Callable[[T], object] | None = None,
        error_callback: Callable[[BaseException], object] | None = None,
    ) -> AsyncResult[T]:
        """Start `func(*args, **kwds)`, and return at once. A thread of the pool makes the callbacks."""
        self._check()
        return AsyncResult(self._submit(func, *args, **(kwds or {})), callback, error_callback)

    def _submit(self, func: Callable[..., T], *args: Any, **kwds: Any) -> "TaskFuture[T]":
        future = self._pool.submit(func, *args, **kwds)
        with self._lock:
            self._under_way.add(future)
        return future

    def map(self, func: Callable[[Any], T], iterable: Iterable[Any], chunksize: int | None = None) -> list[T]:
        """Return `func(value)` for each value. After the exception of a call, the other calls are cancelled."""
        return _all_of(self._started(self._pool.map, func, iterable, chunksize))

    def starmap(
        self, func: Callable[..., T], iterable: Iterable[Iterable[Any]], chunksize: int | None = None
    ) -> list[T]:
        """Return `func(*values)` for each sequence of values. After an exception, the other calls are cancelled."""
        return _all_of(self._started(self._pool.starmap, func, iterable, chunksize))

    def map_async(
        self,
        func: Callable[[Any], T],
        iterable: Iterable[Any],
        chunksize: int | None = None,
        callback: Callable[[list[T]], object] | None = None,
        error_callback: Callable[[BaseException], object] | None = None,
    ) -> AsyncResult[list[T]]:
        """Do as `map`, but return at once."""
        return self._read(self._started(self._pool.map, func, iterable, chunksize), callback, error_callback)

    def starmap_async(
        self,
        func: Callable[..., T],
        iterable: Iterable[Iterable[Any]],
        chunksize: int | None = None,
        callback: Callable[[list[T]], object] | None = None,
        error_callback: Callable[[BaseException], object] | None = None,
    ) -> AsyncResult[list[T]]:
        """Do as `starmap`, but return at once."""
        return self._read(self._started(self._pool.starmap, func, iterable, chunksize), callback, error_callback)

    def _read(
        self,
        results: MapResults[T],
        callback: Callable[[list[T]], object] | None,
        error_callback: Callable[[BaseException], object] | None,
    ) -> AsyncResult[list[T]]:
        """Read the results in a thread of their own."""
        future: Future[list[T]] = Future()
        read = AsyncResult(future, callback, error_callback)

        def run() -> None:
            try:
                found = _all_of(results)
            except BaseException as error:  # noqa: BLE001 - the reader of the future gets it
                future.set_exception(error)
            else:
                future.set_result(found)

        self._readers = [thread for thread in self._readers if thread.is_alive()]
        self._readers.append(threading.Thread(target=run, name="cloudpar map_async", daemon=True))
        self._readers[-1].start()
        return read

    def imap(self, func: Callable[[Any], T], iterable: Iterable[Any], chunksize: int | None = None) -> IMapIterator[T]:
        """Return an iterator over `func(value)` for each value, in order. The iterable may be endless."""
        return self._imap(self._pool.map, func, iterable, chunksize, ordered=True)

    def imap_unordered(
        self, func: Callable[[Any], T], iterable: Iterable[Any], chunksize: int | None = None
    ) -> IMapIterator[T]:
        """Do as `imap`, but give the results in the order in which they arrive."""
        return self._imap(self._pool.map_unordered, func, iterable, chunksize, ordered=False)

    def _imap(
        self,
        start: Callable[..., MapResults[T]],
        func: Callable[[Any], T],
        iterable: Iterable[Any],
        chunksize: int | None,
        *,
        ordered: bool,
    ) -> IMapIterator[T]:
        if isinstance(iterable, Sized) and not isinstance(iterable, Iterator):
            return IMapIterator(_taking(self._started(start, func, iterable, chunksize)))
        # The values of an iterator may come slowly, or depend on earlier results.
        self._check()
        stream = _Stream(lambda value: self._submit(func, value), iter(iterable), ordered=ordered)
        self._streams = [each for each in self._streams if each.thread.is_alive()]
        self._streams.append(stream)
        return IMapIterator(stream.take)

    def _started(
        self, start: Callable[..., MapResults[T]], func: Any, iterable: Iterable[Any], chunksize: int | None
    ) -> MapResults[T]:
        self._check()
        results = start(func, iterable, chunksize=chunksize)
        with self._lock:
            self._under_way.add(results)
        return results

    def _check(self) -> None:
        if self._closed:
            raise ValueError("Pool not running")

    def close(self) -> None:
        """Accept no more calls. The calls that are under way go on."""
        self._closed = True

    def terminate(self) -> None:
        """Stop all calls at once, and accept no more."""
        self._closed = self._terminated = True
        for stream in self._streams:
            stream.stopped = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            under_way = list(self._under_way)
        for each in under_way:
            each.cancel()

    def join(self) -> None:
        """Wait until all calls have ended and their callbacks have returned.

        Raises:
            ValueError: Neither `close` nor `terminate` was called before.
        """
        if not self._closed:
            raise ValueError("Pool is still running")
        # After `terminate`, an iterable of `imap` may still wait for its next value.
        streams = [] if self._terminated else [stream.thread for stream in self._streams]
        for thread in [*streams, *self._readers]:
            thread.join()
        self._pool.shutdown()

    def __enter__(self) -> Self:
        self._check()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.terminate()


def _all_of(results: MapResults[T]) -> list[T]:
    try:
        return list(results)
    finally:
        results.close()  # a program that keeps the exception would keep the results, and so the other calls
