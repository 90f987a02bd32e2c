"""A backend of joblib, so that `joblib.Parallel` and the `n_jobs` of scikit-learn run on a pool.

Importing this module registers the backend under the name "cloudpar". joblib must be installed here and at the workers.

Example:
    >>> import joblib
    >>> from cloudpar import Pool
    >>> import cloudpar.joblib
    >>> with Pool(workers=2) as pool, joblib.parallel_config("cloudpar", pool=pool, n_jobs=-1):
    ...     joblib.Parallel()(joblib.delayed(pow)(x, 2) for x in range(5))
    [0, 1, 4, 9, 16]
"""

import os
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import cache, partial
from typing import Any

from joblib.parallel import AutoBatchingMixin, ParallelBackendBase, SequentialBackend, register_parallel_backend

from .future import TaskFuture
from .pool import SUBMITTED_AHEAD, Pool
from .snapshots import Snapshot, snapshot

NAME = "cloudpar"
LARGE_BYTES = 1_000_000
"""From this size on, in bytes, an argument that several tasks have in common is sent once. joblib's own processes share
arrays from this size on."""

Call = tuple[Callable[..., Any], Sequence[Any], dict[str, Any]]


class CloudparBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]
    """Runs the calls of `joblib.Parallel` on a pool. `joblib.parallel_config("cloudpar")` makes it.

    Arrays and data frames of 1 MB or more are sent once if they are arguments of several calls. The calls must not
    change them. Calls of `Parallel` inside a task run one after the other, because an executor has one core.

    Args:
        pool: The pool. By default all calls of this process use one pool, `Pool()`. It starts with the first call, and
            stops when the process ends.
        backend_arguments: joblib's own arguments.

    Raises:
        TypeError: `pool` is not a `cloudpar.Pool`.
    """

    supports_retrieve_callback = True
    default_n_jobs = -1

    def __init__(self, pool: Pool | None = None, **backend_arguments: Any) -> None:
        super().__init__(**backend_arguments)
        if not isinstance(pool, Pool | None):
            raise TypeError(f"pool={pool!r}: give a cloudpar.Pool, or nothing for a pool that all calls share")
        self._pool = pool or _common_pool()
        self._common = CommonArguments()
        self._running: set[TaskFuture[Any]] = set()

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """Return how many calls joblib runs at a time; -1 means all executors.

        A pool on this machine runs at most one call for each of its executors. Other masters may have any number of
        executors and start more of them, so joblib keeps 1,000 calls there if `n_jobs` is -1.

        Raises:
            ValueError: `n_jobs` is 0.
        """
        if n_jobs == 0:
            raise ValueError("n_jobs=0: give the number of calls at a time, or -1 for all executors")
        if n_jobs is None:
            return 1
        most = self._pool.executors or SUBMITTED_AHEAD
        return min(n_jobs, most) if n_jobs > 0 else max(1, most + 1 + n_jobs)

    def start_call(self) -> None:
        """Forget the arguments of the last call of `Parallel`: the program may have changed them since."""
        self._common.forget_values()

    def stop_call(self) -> None:
        """Free the memory of the arguments."""
        self._common.forget_values()

    def submit(self, func: Any, callback: Callable[[Future[Any]], None] | None = None) -> TaskFuture[Any]:
        """Start a task that makes some calls. `func` is joblib's BatchedCalls."""
        code, calls = self._common.task(func.items)
        future: TaskFuture[Any] = self._pool.submit(code, calls)
        self._running.add(future)
        future.add_done_callback(self._running.discard)
        if callback is not None:
            future.add_done_callback(callback)
        return future

    apply_async = submit  # joblib 1.4 calls the method by this name

    def retrieve_result_callback(self, out: Future[Any]) -> Any:
        """Return the results of a task's calls, or raise the exception of one of them."""
        return out.result()

    def abort_everything(self, ensure_ready: bool = True) -> None:  # noqa: ARG002 - joblib passes it by name
        """Cancel all calls, because one of them has failed, or because no one wants their results any more."""
        for future in list(self._running):
            future.cancel()

    def get_nested_backend(self) -> tuple[Any, None]:
        """Return the backend for calls of `Parallel` inside a task."""
        return SequentialBackend(nesting_level=(self.nesting_level or 0) + 1), None


class CommonArguments:
    """The large arguments that several tasks have in common."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # joblib also starts tasks in the thread that delivers results
        self._seen: dict[tuple[int, ...], list[weakref.ref[Any]]] = {}
        self._code: dict[tuple[int, ...], Snapshot] = {}

    def task(self, calls: Sequence[Call]) -> tuple[Snapshot, list[Any]]:
        """Return the function and the argument of a task that makes some calls and returns their results.

        If an earlier task had the same large arguments, the function captures them, so that they are serialized once.
        """
        large = {id(value): value for call in calls for value in _arguments(call) if _is_large(value)}
        code = self._capturing(large) if large else None
        if code is None:
            return _code(), [(*call, {}) for call in calls]
        return code, [_without(call, list(large)) for call in calls]

    def forget_values(self) -> None:
        """Serialize all arguments again if further tasks have them."""
        with self._lock:
            self._code.clear()
            self._seen = {key: known for key, known in self._seen.items() if all(seen() is not None for seen in known)}

    def _capturing(self, large: dict[int, Any]) -> Snapshot | None:
        """Return code that captures these arguments; None if no earlier task had them."""
        key = tuple(large)
        with self._lock:
            # The code keeps its arguments alive, so no other object gets one of their ids.
            if key not in self._code and self._is_known(key, large):
                self._code[key] = snapshot(partial(_make_calls(), list(large.values())))
            return self._code.get(key)

    def _is_known(self, key: tuple[int, ...], large: dict[int, Any]) -> bool:
        known = [seen() for seen in self._seen.get(key, ())]
        if known and all(one is other for one, other in zip(known, large.values(), strict=True)):
            return True
        try:
            self._seen[key] = [weakref.ref(value) for value in large.values()]
        except TypeError:  # such as a list: without a reference, another object could get its id
            self._seen.pop(key, None)
        return False


def _arguments(call: Call) -> list[Any]:
    _, args, kwargs = call
    return [*args, *kwargs.values()]


def _is_large(value: Any) -> bool:
    if isinstance(value, str | bytes | int | float | None):
        return False
    if type(value).__module__.startswith("scipy.sparse"):
        value = value.data
    return max(sys.getsizeof(value), getattr(value, "nbytes", 0)) >= LARGE_BYTES


def _without(call: Call, captured: list[int]) -> tuple[Any, ...]:
    """Return a call without its captured arguments, and the number of the captured value for each place."""
    function, args, kwargs = call
    given: list[tuple[int | str, Any]] = [*enumerate(args), *kwargs.items()]
    places = {place: captured.index(id(value)) for place, value in given if id(value) in captured}
    left = [None if number in places else value for number, value in enumerate(args)]
    return function, left, {name: None if name in places else value for name, value in kwargs.items()}, places


@cache
def _make_calls() -> Callable[..., Any]:
    """Return the function that makes a task's calls."""

    def make_calls(captured: list[Any], calls: list[Any]) -> list[Any]:
        from joblib import parallel_config

        results = []
        with parallel_config(backend="sequential"):
            for function, args, kwargs, places in calls:
                given: list[Any] = [*args]
                for place, number in places.items():
                    if isinstance(place, str):
                        kwargs[place] = captured[number]
                    else:
                        given[place] = captured[number]
                results.append(function(*given, **kwargs))
        return results

    make_calls.__module__ = "__main__"  # so that cloudpickle sends it by value: a worker may not have the SDK
    make_calls.__qualname__ = "joblib.Parallel"
    return make_calls


@cache
def _code() -> Snapshot:
    """Return code that captures nothing."""
    return snapshot(partial(_make_calls(), []))


_common: dict[int, Pool] = {}
"""The pool of all calls to which no pool was given, by the process id: a pool does not survive a fork."""

_making = threading.Lock()


def _common_pool() -> Pool:
    with _making:
        if (pid := os.getpid()) not in _common:
            _common[pid] = Pool(progress=False)
        return _common[pid]


register_parallel_backend(NAME, CloudparBackend)
