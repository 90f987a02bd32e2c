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
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from concurrent.futures import CancelledError, Future
from concurrent.futures import wait as wait_for
from multiprocessing import TimeoutError  # noqa: A004 - programs import it from the module of their pool
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from . import pool as pools
from .map_results import MapResults

if TYPE_CHECKING:
    from .future import TaskFuture

__all__ = ["AsyncResult", "IMapIterator", "Pool", "TimeoutError"]

T = TypeVar("T")

BUFFER = 1_000
"""How many values `imap` sends ahead if the iterable does not say how many it has. It may be endless."""


class AsyncResult(Generic[T]):
    """The result of one call, or the list of results of a map, which may still be under way."""

    def __init__(
        self,
        future: "Future[T]",
        callback: Callable[[T], object] | None,
        error_callback: Callable[[BaseException], object] | None,
    ) -> None:
        self._future = future

        def ended(future: "Future[T]") -> None:
            error = CancelledError() if future.cancelled() else future.exception()
            if error is None and callback is not None:
                callback(future.result())
            if error is not None and error_callback is not None:
                error_callback(error)

        future.add_done_callback(ended)

    def get(self, timeout: float | None = None) -> T:
        """Return the result.

        Raises:
            TimeoutError: There is no result after `timeout` seconds. This is `multiprocessing.TimeoutError`.
            Exception: The exception that the call raised.
        """
        self.wait(timeout)
        if not self._future.done():
            raise TimeoutError
        return self._future.result()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the result is there, or until `timeout` seconds have passed."""
        wait_for([self._future], timeout)

    def ready(self) -> bool:
        """Return whether the call has ended."""
        return self._future.done()

    def successful(self) -> bool:
        """Return whether the call has ended without an exception.

        Raises:
            ValueError: The call has not ended.
        """
        if not self.ready():
            raise ValueError(f"{self!r} not ready")
        return not self._future.cancelled() and self._future.exception() is None


class _Values(Iterator[Any]):
    """Ends an iterable where it raises an exception, so that the values before it are sent."""

    def __init__(self, iterable: Iterable[Any]) -> None:
        self.error: Exception | None = None
        self._iterator = iter(iterable)

    def __next__(self) -> Any:
        try:
            return next(self._iterator)
        except StopIteration:
            raise
        except Exception as error:  # noqa: BLE001 - the reader of the results gets it
            self.error = error
            raise StopIteration from None


class IMapIterator(Iterator[T]):
    """The results of `imap`. After the exception of a call, it goes on with the next result.

    An exception of the iterable comes after the results of the values before it.
    """

    def __init__(self, results: MapResults[T], values: "_Values | None" = None) -> None:
        self._results = results
        self._values = values

    def __next__(self) -> T:
        return self.next()

    def next(self, timeout: float | None = None) -> T:
        """Return the next result.

        Raises:
            TimeoutError: There is no result after `timeout` seconds. This is `multiprocessing.TimeoutError`.
            StopIteration: There are no more results.
            Exception: The exception that the call raised.
        """
        feed = self._results._feed  # noqa: SLF001 - a limit for each call of `next` is of no use to other iterators
        feed.deadline = None if timeout is None else time.monotonic() + timeout
        try:
            return next(self._results)
        except builtins.TimeoutError as error:
            if self._results.raised:  # by the task
                raise
            raise TimeoutError from error
        except StopIteration:
            if self._values is None or self._values.error is None:
                raise
            failure, self._values.error = self._values.error, None
            raise failure from None


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
        self._pool = pools.Pool(workers=processes, initializer=initializer, initargs=initargs)
        self._closed = False
        self._under_way: weakref.WeakSet[TaskFuture[Any] | MapResults[Any]] = weakref.WeakSet()

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
        future = self._pool.submit(func, *args, **(kwds or {}))
        self._under_way.add(future)
        return AsyncResult(future, callback, error_callback)

    def map(self, func: Callable[[Any], T], iterable: Iterable[Any], chunksize: int | None = None) -> list[T]:
        """Return `func(value)` for each value. After the exception of a call, the other calls are cancelled."""
        return list(self._started(self._pool.map, func, iterable, chunksize))

    def starmap(
        self, func: Callable[..., T], iterable: Iterable[Iterable[Any]], chunksize: int | None = None
    ) -> list[T]:
        """Return `func(*values)` for each sequence of values. After an exception, the other calls are cancelled."""
        return list(self._started(self._pool.starmap, func, iterable, chunksize))

    def map_async(
        self,
        func: Callable[[Any], T],
        iterable: Iterable[Any],
        chunksize: int | None = None,
        callback: Callable[[list[T]], object] | None = None,
        error_callback: Callable[[BaseException], object] | None = None,
    ) -> AsyncResult[list[T]]:
        """Do as `map`, but return at once."""
        return _read(self._started(self._pool.map, func, iterable, chunksize), callback, error_callback)

    def starmap_async(
        self,
        func: Callable[..., T],
        iterable: Iterable[Iterable[Any]],
        chunksize: int | None = None,
        callback: Callable[[list[T]], object] | None = None,
        error_callback: Callable[[BaseException], object] | None = None,
    ) -> AsyncResult[list[T]]:
        """Do as `starmap`, but return at once."""
        return _read(self._started(self._pool.starmap, func, iterable, chunksize), callback, error_callback)

    def imap(self, func: Callable[[Any], T], iterable: Iterable[Any], chunksize: int | None = None) -> IMapIterator[T]:
        """Return an iterator over `func(value)` for each value, in order. The iterable may be endless."""
        return self._imap(self._pool.map, func, iterable, chunksize)

    def imap_unordered(
        self, func: Callable[[Any], T], iterable: Iterable[Any], chunksize: int | None = None
    ) -> IMapIterator[T]:
        """Do as `imap`, but give the results in the order in which they arrive."""
        return self._imap(self._pool.map_unordered, func, iterable, chunksize)

    def _imap(
        self, start: Callable[..., MapResults[T]], func: Any, iterable: Iterable[Any], chunksize: int | None
    ) -> IMapIterator[T]:
        if isinstance(iterable, Sized):
            return IMapIterator(self._started(start, func, iterable, chunksize))
        values = _Values(iterable)
        return IMapIterator(self._started(start, func, values, chunksize, buffersize=BUFFER), values)

    def _started(self, start: Callable[..., MapResults[T]], *arguments: Any, **options: Any) -> MapResults[T]:
        func, iterable, chunksize = arguments
        self._check()
        results = start(func, iterable, chunksize=chunksize, **options)
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
        self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        for each in list(self._under_way):
            each.cancel()

    def join(self) -> None:
        """Wait until all calls have ended.

        Raises:
            ValueError: Neither `close` nor `terminate` was called before.
        """
        if not self._closed:
            raise ValueError("Pool is still running")
        self._pool.shutdown()

    def __enter__(self) -> Self:
        self._check()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.terminate()


def _read(
    results: MapResults[T],
    callback: Callable[[list[T]], object] | None,
    error_callback: Callable[[BaseException], object] | None,
) -> AsyncResult[list[T]]:
    """Read the results in a thread of their own."""
    future: Future[list[T]] = Future()

    def read() -> None:
        try:
            future.set_result(list(results))
        except BaseException as error:  # noqa: BLE001 - the reader of the future gets it
            future.set_exception(error)

    threading.Thread(target=read, name="cloudpar map_async", daemon=True).start()
    return AsyncResult(future, callback, error_callback)
