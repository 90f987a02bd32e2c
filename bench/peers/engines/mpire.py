"""mpire's WorkerPool. Its shared objects are inherited by fork."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mpire import WorkerPool

from bench.peers.engine import WORKERS, Engine


@contextmanager
def mpire(array: Any) -> Iterator[Engine]:
    """Start a pool. If it has shared objects, each function gets them as its first argument."""
    with WorkerPool(WORKERS, keep_alive=True, shared_objects=array) as pool:

        def map_all(function: Any, values: Any) -> list[Any]:
            return list(pool.map(function, values, concatenate_numpy_output=False))

        yield Engine(map_all, lambda function, value: pool.apply(function, (value,)), map_all)
