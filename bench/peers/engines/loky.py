"""loky's reusable executor. It has no fork, so that each process gets a copy of the array."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from loky import get_reusable_executor

from bench.peers.engine import WORKERS, Engine, chunk_size

from .standard import keep, on_kept


@contextmanager
def loky(array: Any) -> Iterator[Engine]:
    """Start the executor. Processes never end for being idle, so that no measurement starts them again."""
    executor = get_reusable_executor(WORKERS, timeout=None, initializer=keep, initargs=(array,))
    try:
        yield Engine(
            lambda function, values: list(executor.map(function, values, chunksize=chunk_size(values))),
            lambda function, value: executor.submit(function, value).result(),
            lambda function, values: list(
                executor.map(partial(on_kept, function), values, chunksize=chunk_size(values))
            ),
        )
    finally:
        executor.shutdown()
