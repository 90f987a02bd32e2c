"""The pool of this project."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from bench.peers.engine import WORKERS, Engine
from cloudpar import Pool


@contextmanager
def pool(array: Any) -> Iterator[Engine]:
    """Start a pool with a master and a worker of its own. The function captures the array, as the FAQ says."""
    with Pool("local", workers=WORKERS, progress=False) as started:
        yield Engine(
            lambda function, values: list(started.map(function, values)),
            lambda function, value: started.submit(function, value).result(),
            lambda function, values: list(started.map(partial(function, array), values)),
        )
