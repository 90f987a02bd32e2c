"""The pool, joblib and Dask behind the two calls that programs make: `map` and `submit`."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import joblib
from distributed import Client, LocalCluster

import cloudpar.joblib
from cloudpar import Pool

CLOUDPAR: Final = "cloudpar"
JOBLIB: Final = "joblib"
DASK: Final = "dask"


@dataclass(frozen=True)
class Engine:
    """A library with its processes.

    Attributes:
        name: CLOUDPAR, JOBLIB or DASK.
        map: Calls a function for each value; returns the results in the order of the values.
        backend: Makes calls of joblib.Parallel use the library, those of scikit-learn's `n_jobs`, too.
        submit: Starts a call and returns its future; None for joblib, which has no such call.
        pool: The pool, for a program that needs more of it than `map`; None for the other libraries.
    """

    name: str
    map: Callable[[Callable[..., Any], Iterable[Any]], list[Any]]
    backend: Callable[[], AbstractContextManager[object]]
    submit: Callable[..., Future[Any]] | None = None
    pool: Pool | None = None


@contextmanager
def cloudpar_engine(workers: int) -> Iterator[Engine]:
    """Yield a pool with a master and a worker of its own."""
    with Pool("local", workers=workers, progress=False) as pool:
        yield Engine(
            CLOUDPAR,
            lambda function, values: list(pool.map(function, values)),
            lambda: joblib.parallel_config(cloudpar.joblib.NAME, pool=pool),
            pool.submit,
            pool,
        )


@contextmanager
def joblib_engine(workers: int) -> Iterator[Engine]:
    """Yield the default backend of joblib, loky, which keeps its processes from call to call."""

    def map_all(function: Callable[..., Any], values: Iterable[Any]) -> list[Any]:
        return list(joblib.Parallel(n_jobs=workers)(joblib.delayed(function)(value) for value in values))

    try:
        yield Engine(JOBLIB, map_all, lambda: joblib.parallel_config("loky"))
    finally:
        joblib.externals.loky.get_reusable_executor().shutdown()


@contextmanager
def dask_engine(workers: int) -> Iterator[Engine]:
    """Yield a local Dask cluster of single-threaded workers."""
    cluster = LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=None, host="127.0.0.1", silence_logs=40
    )
    with cluster, Client(cluster) as client:
        yield Engine(
            DASK,
            lambda function, values: client.gather(client.map(function, list(values), pure=False)),
            lambda: joblib.parallel_config("dask"),
            partial(client.submit, pure=False),
        )


ENGINES: Final[dict[str, Callable[[int], AbstractContextManager[Engine]]]] = {
    CLOUDPAR: cloudpar_engine,
    JOBLIB: joblib_engine,
    DASK: dask_engine,
}
