"""joblib's backend for a pool."""

import os
import threading
from concurrent.futures import Future
from functools import partial
from typing import Any

from joblib.parallel import AutoBatchingMixin, ParallelBackendBase, SequentialBackend

from cloudpar.pool import Pool

from .callbacks import Callback, Callbacks
from .common_arguments import CommonArguments

REMOTE_JOBS = 200
"""What `n_jobs=-1` means if the pool has a master elsewhere, which may have any number of executors."""


class CloudparBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]
    """Runs the calls of `joblib.Parallel` on a pool. `joblib.parallel_config("cloudpar")` makes it.

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
        self._given = pool
        self._common = CommonArguments()
        self._running: set[Future[Any]] = set()
        self._callbacks = Callbacks()

    @property
    def _pool(self) -> Pool:
        return self._given or _common_pool()

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """Return how many calls joblib runs at a time; -1 means all executors, or REMOTE_JOBS.

        Raises:
            ValueError: `n_jobs` is 0.
        """
        if n_jobs == 0:
            raise ValueError("n_jobs=0: give the number of calls at a time, or -1 for all executors")
        executors = self._pool.executors
        if n_jobs is None or n_jobs < 0:
            return max(1, (executors or REMOTE_JOBS) + 1 + (n_jobs or self.default_n_jobs))
        return min(n_jobs, executors or n_jobs)

    def start_call(self) -> None:
        """Forget the arguments of the last call of `Parallel`: the program may have changed them since."""
        self._common.forget_values()

    def stop_call(self) -> None:
        """Free the memory of the arguments."""
        self._common.forget_values()

    def terminate(self) -> None:
        """Forget how long the calls took: the next ones may take longer."""
        self.reset_batch_stats()

    def submit(self, func: Any, callback: Callback | None = None) -> Future[Any]:
        """Start a task that makes some calls. `func` is joblib's BatchedCalls."""
        future: Future[Any]
        try:
            code, calls = self._common.task(func.items)
            future = self._pool.submit(code, calls)
        except Exception as error:  # noqa: BLE001 - if this raised in a callback, joblib would wait without end
            future = Future()
            future.set_exception(error)
        self._running.add(future)
        future.add_done_callback(self._running.discard)
        if callback is not None:
            future.add_done_callback(partial(self._callbacks.put, callback))
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


_common: dict[int, Pool] = {}
"""The pool of all calls to which no pool was given, by the process id: a pool does not survive a fork."""

_making = threading.Lock()


def _common_pool() -> Pool:
    with _making:
        if (pid := os.getpid()) not in _common:
            _common[pid] = Pool(progress=False)
        return _common[pid]
