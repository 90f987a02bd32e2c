"""The methods of a pool that start many tasks with one call."""

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Unpack, overload

from cloudpar._arguments.argument_types import check_iterables, whole
from cloudpar._arguments.keywords import named
from cloudpar._arguments.map_options import MapOptions, arguments
from cloudpar._arguments.retry import Retry, RetryOn, read_retry
from cloudpar._formatting.tracebacks import ShortTracebacks

if TYPE_CHECKING:
    from cloudpar.map_results import MapResults
    from cloudpar_protocol.payloads import CallStyle

    from .client import Client

T = TypeVar("T")


class Keywords(TypedDict, total=False):
    """The keyword arguments of `map`, `map_unordered` and `starmap`; see `MapMethods.map`."""

    timeout: float | None
    chunksize: int | None
    buffersize: int | None
    task_timeout_s: float | None
    retries: int | None
    retry_on: RetryOn


class MapMethods(Executor):
    """The methods for many tasks; `Pool` adds the client."""

    _client: "Client"

    def _check(self) -> None:
        """Raise RuntimeError if this pool accepts no calls: it is shut down, or this process is a fork."""
        raise NotImplementedError

    @overload
    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        return_exceptions: Literal[True],
        **options: Unpack[Keywords],
    ) -> "MapResults[T | BaseException]": ...

    @overload
    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        return_exceptions: Literal[False] = False,
        **options: Unpack[Keywords],
    ) -> "MapResults[T]": ...

    @named("Pool.map")
    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int | None = None,
        buffersize: int | None = None,
        task_timeout_s: float | None = None,
        retries: int | None = None,
        retry_on: RetryOn = Exception,
        return_exceptions: bool = False,
    ) -> "MapResults[Any]":
        """Run `fn` on each value of an iterable as one package.

        If there are several iterables, each call of `fn` gets one value from each of them, as with `zip`.

        Returns an iterator over the results in task order, with one result for each task. The program can read results
        while tasks are running. If a task failed, `next` raises the task's exception, and the following call continues
        with the next task. (StopIteration, which would end the iterator, is raised as a RuntimeError.) If the package
        fails, `next` raises this failure for each task without a result. This method reads the iterables completely
        before the first task starts. With `buffersize`, the iterables are read piece by piece instead, and each piece
        becomes a package.

        Args:
            fn: Any callable.
            iterables: The values for the calls of `fn`. Without `buffersize`, there may be at most 10,000,000 calls,
                and a single `range` is sent as two numbers.
            timeout: The time limit for reading, in seconds from this call. If a result has not arrived by then, `next`
                raises TimeoutError, and the tasks continue. None means no limit.
            chunksize: How many tasks each chunk has; a worker takes whole chunks. None means that the master decides
                from measured durations.
            buffersize: The maximum number of tasks that the pool has sent and whose results the program has not read
                yet. The iterables are consumed while the results are read, so they may be endless. None means that all
                tasks are sent at once.
            task_timeout_s: The longest time that one task may run, in seconds, including its retries. None means the
                pool's setting. If the operator's limit is shorter, the operator's limit applies.
            retries: How often to retry a task that raises. The same executor retries the task immediately. The master
                charges the time of each try. None means the pool's setting.
            retry_on: If `retries` is given, retry only after these exceptions and their subclasses.
            return_exceptions: Whether to return a task's exception as its result instead of raising it, as in
                `asyncio.gather`. If the package fails, the iterator also returns this failure, for each task without a
                result. Other errors are still raised, such as this map's timeout, Ctrl-C, or a value that cannot be
                pickled.

        Raises:
            SerializationError: The function or a value cannot be pickled; the text names the part that is the cause.
            TypeError: `fn` is not callable or is an async function, there is no iterable, or an argument has a wrong
                type.
            ValueError: An argument is out of its range, or `retry_on` is given without `retries`.
            TooLarge: There are more values than a package may have. Or the values, or the function with what it
                captures, take more than 1 GiB. Or the modules of your project that they need take more than 64 MiB in
                all. Or a task at the deepest level of nesting makes this call.
            QuotaExhausted: The account has no compute time left.
            CloudparError: The master refuses the package for another reason, or does not answer.
            RuntimeError: The pool is shut down, or this process is a fork of the process that made the pool.
            OSError: The disk has no room for the serialized values.
            Exception: The exception that an iterable raised. With `buffersize`, this method raises only the errors of
                the first piece, and `next` raises those of later pieces.

        Example:
            >>> from cloudpar import Pool
            >>> with Pool(workers=2) as pool:
            ...     list(pool.map(pow, [2, 3, 4], [5, 2, 3]))
            [32, 9, 64]
            >>> with Pool(workers=2) as pool:
            ...     list(pool.map(int, ["3", "x", "5"], return_exceptions=True))
            [3, ValueError("invalid literal for int() with base 10: 'x'"), 5]
        """
        __tracebackhide__ = True
        values, call = arguments("Pool.map", iterables)
        options = MapOptions(
            timeout, chunksize, buffersize, task_timeout_s, _retry(retries, retry_on), return_exceptions
        )
        return self._map(fn, values, call, options, ordered=True)

    @overload
    def map_unordered(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        return_exceptions: Literal[True],
        **options: Unpack[Keywords],
    ) -> "MapResults[T | BaseException]": ...

    @overload
    def map_unordered(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        return_exceptions: Literal[False] = False,
        **options: Unpack[Keywords],
    ) -> "MapResults[T]": ...

    @named("Pool.map_unordered")
    def map_unordered(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int | None = None,
        buffersize: int | None = None,
        task_timeout_s: float | None = None,
        retries: int | None = None,
        retry_on: RetryOn = Exception,
        return_exceptions: bool = False,
    ) -> "MapResults[Any]":
        """Do the same as `map`, but give the results in the order in which they arrive.

        If you need to know which task a result belongs to, let `fn` return a key with its value.

        Example:
            >>> from cloudpar import Pool
            >>> with Pool(workers=2) as pool:
            ...     sorted(pool.map_unordered(lambda x: (x, x * x), range(4)))
            [(0, 0), (1, 1), (2, 4), (3, 9)]
        """
        __tracebackhide__ = True
        values, call = arguments("Pool.map_unordered", iterables)
        options = MapOptions(
            timeout, chunksize, buffersize, task_timeout_s, _retry(retries, retry_on), return_exceptions
        )
        return self._map(fn, values, call, options, ordered=False)

    @overload
    def starmap(
        self,
        fn: Callable[..., T],
        iterable: Iterable[Iterable[Any]],
        *,
        return_exceptions: Literal[True],
        **options: Unpack[Keywords],
    ) -> "MapResults[T | BaseException]": ...

    @overload
    def starmap(
        self,
        fn: Callable[..., T],
        iterable: Iterable[Iterable[Any]],
        *,
        return_exceptions: Literal[False] = False,
        **options: Unpack[Keywords],
    ) -> "MapResults[T]": ...

    @named("Pool.starmap")
    def starmap(
        self,
        fn: Callable[..., T],
        iterable: Iterable[Iterable[Any]],
        *,
        timeout: float | None = None,
        chunksize: int | None = None,
        buffersize: int | None = None,
        task_timeout_s: float | None = None,
        retries: int | None = None,
        retry_on: RetryOn = Exception,
        return_exceptions: bool = False,
    ) -> "MapResults[Any]":
        """Do the same as `map`, but take the arguments of each call from one value: `fn(*value)`.

        Example:
            >>> from cloudpar import Pool
            >>> with Pool(workers=2) as pool:
            ...     list(pool.starmap(pow, [(2, 5), (3, 2)]))
            [32, 9]
        """
        __tracebackhide__ = True
        options = MapOptions(
            timeout, chunksize, buffersize, task_timeout_s, _retry(retries, retry_on), return_exceptions
        )
        check_iterables("Pool.starmap", [iterable])
        return self._map(fn, iterable, "args", options, ordered=True)

    @named("Pool.parallel_for")
    def parallel_for(
        self, start: int, stop: int, body: Callable[[int], object], *, task_timeout_s: float | None = None
    ) -> None:
        """Run `body(i)` for each i in [start, stop) as a task, and return when all are done.

        All writes of the body into captured lists, dicts, object attributes and NumPy arrays are then in this process's
        memory, as after a normal loop. The pool copies the writes back only after all tasks have succeeded, so after an
        error memory is unchanged. Writing the old value (`x[i] = x[i]`) does not count as a write: if another task
        writes a different value to `x[i]`, the pool copies back that value, and there is no conflict.

        Args:
            start: The first index.
            stop: The index after the last one.
            body: The function that is called with each index. No two calls may write the same element. The return value
                is ignored.
            task_timeout_s: The longest time that one of these tasks may run, in seconds. None means the pool's setting.
                If the operator's limit is shorter, the operator's limit applies.

        Raises:
            SideEffectError: A write cannot be copied back, or two tasks wrote one element; the text names the variable.
            SerializationError: The body, or what it captures, cannot be pickled; the text names the part that is the
                cause.
            TypeError: `body` is not callable or is an async function, or an argument has a wrong type.
            ValueError: `task_timeout_s` is not above 0, or a number is too large.
            CloudparError: The package is too large or fails, or the master refuses it or does not answer.
            RuntimeError: The pool is shut down, or this process is a fork of the process that made the pool.
            Exception: The exception that the body raised.

        Example:
            >>> from cloudpar import Pool
            >>> squares = [0] * 5
            >>> def body(i):
            ...     squares[i] = i * i
            >>> with Pool(workers=2) as pool:
            ...     pool.parallel_for(0, 5, body)
            >>> squares
            [0, 1, 4, 9, 16]
        """
        __tracebackhide__ = True
        start, stop = whole("start", start), whole("stop", stop)
        options = MapOptions(task_timeout_s=task_timeout_s)
        self._check()
        with ShortTracebacks():
            self._client.parallel_for(start, stop, body, options.task_timeout_s)

    def _map(
        self, fn: Callable[..., T], values: Iterable[Any], call: "CallStyle", options: MapOptions, *, ordered: bool
    ) -> "MapResults[Any]":
        __tracebackhide__ = True  # IPython and pytest leave a frame with this variable out of tracebacks
        self._check()
        keep = None if options.buffersize is None else self  # reading starts further packages, which need the pool
        with ShortTracebacks():
            feed = self._client.feed(fn, values, call, options, keep=keep)
            feed.refill()
            return self._client.results(feed, ordered=ordered)


def _retry(retries: int | None, retry_on: RetryOn) -> Retry | None:
    """Return the retry setting of one call; None if the call has none, and the pool's setting applies.

    Raises like `read_retry`, and a ValueError if `retry_on` is given without `retries`.
    """
    if retries is not None:
        return read_retry(retries, retry_on)
    if retry_on is not Exception:
        raise ValueError("retry_on= names the exceptions to retry after: also say how often, with retries=")
    return None
