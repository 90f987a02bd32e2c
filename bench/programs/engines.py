"""The pool, joblib and Dask behind the two calls that programs make: `map` and `submit`."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Protocol, Self

import joblib
from distributed import Client, LocalCluster

from cloudpar import Pool


class Engine(Protocol):
    """The calls that a program may make."""

    name: str

    def map(self, function: Callable[..., Any], values: Iterable[Any]) -> list[Any]:
        """Return the results in the order of the values."""
        ...

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Start a call and return its future."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class CloudparEngine:
    """A pool with a master and workers of its own."""

    name = "cloudpar"

    def __init__(self, workers: int) -> None:
        self.pool = Pool("local", workers=workers, progress=False)

    def map(self, function: Callable[..., Any], values: Iterable[Any]) -> list[Any]:
        return list(self.pool.map(function, values))

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        return self.pool.submit(function, *args)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown()


class JoblibEngine:
    """joblib with its default backend, loky, which keeps its processes from call to call."""

    name = "joblib"

    def __init__(self, workers: int) -> None:
        self._workers = workers

    def map(self, function: Callable[..., Any], values: Iterable[Any]) -> list[Any]:
        parallel = joblib.Parallel(n_jobs=self._workers)
        return list(parallel(joblib.delayed(function)(value) for value in values))

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Joblib cannot submit a call, so programs that submit do not list it among their engines."""
        raise NotImplementedError(f"joblib cannot submit {function.__name__}{args}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        joblib.externals.loky.get_reusable_executor().shutdown()


class DaskEngine:
    """A local Dask cluster of single-threaded workers."""

    name = "dask"

    def __init__(self, workers: int) -> None:
        self._cluster = LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None, host="127.0.0.1", silence_logs=40
        )
        self._client = Client(self._cluster)

    def map(self, function: Callable[..., Any], values: Iterable[Any]) -> list[Any]:
        results: list[Any] = self._client.gather(self._client.map(function, list(values), pure=False))
        return results

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        future: Future[Any] = self._client.submit(function, *args, pure=False)
        return future

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._cluster.close()


ENGINES: dict[str, Callable[[int], Engine]] = {
    "cloudpar": CloudparEngine,
    "joblib": JoblibEngine,
    "dask": DaskEngine,
}
