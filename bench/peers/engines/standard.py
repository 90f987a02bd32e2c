"""The process pools of the standard library.

Tasks find the array in a global of their process, set by an initializer: multiprocessing's guidelines recommend that
processes inherit what they share. With fork, the default on Linux before Python 3.14, inheriting copies nothing.
"""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Final

from bench.peers.engine import WORKERS, Engine, OnArray, chunk_size

KEPT: Final[dict[str, Any]] = {}
"""The array, in a process that runs tasks."""


def keep(array: Any) -> None:
    """Initialize a process."""
    KEPT["array"] = array


def on_kept(function: OnArray, value: Any) -> Any:
    """Call a function with the array that this process has."""
    return function(KEPT["array"], value)


@contextmanager
def _executor(array: Any, size: Callable[[Sequence[Any]], int]) -> Iterator[Engine]:
    with ProcessPoolExecutor(WORKERS, initializer=keep, initargs=(array,)) as pool:
        yield Engine(
            lambda function, values: list(pool.map(function, values, chunksize=size(values))),
            lambda function, value: pool.submit(function, value).result(),
            lambda function, values: list(pool.map(partial(on_kept, function), values, chunksize=size(values))),
        )


def process_pool(array: Any) -> AbstractContextManager[Engine]:
    """Start a ProcessPoolExecutor that sends each task on its own, which is the default."""
    return _executor(array, lambda _: 1)


def chunked_pool(array: Any) -> AbstractContextManager[Engine]:
    """Start a ProcessPoolExecutor that sends chunks."""
    return _executor(array, chunk_size)


@contextmanager
def mp_pool(array: Any) -> Iterator[Engine]:
    """Start a multiprocessing.Pool."""
    with multiprocessing.Pool(WORKERS, keep, (array,)) as pool:
        yield Engine(
            pool.map,
            lambda function, value: pool.apply(function, (value,)),
            lambda function, values: pool.map(partial(on_kept, function), values),
        )
        pool.close()
        pool.join()
