"""joblib with its defaults. It writes a large array into a file, and its processes map this file."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from joblib import Parallel, delayed

from bench.peers.engine import WORKERS, Engine


@contextmanager
def joblib(array: Any) -> Iterator[Engine]:
    """Yield a Parallel that is used as a context manager, which its documentation recommends for several calls."""
    with Parallel(n_jobs=WORKERS) as parallel:
        yield Engine(
            lambda function, values: list(parallel(delayed(function)(value) for value in values)),
            lambda function, value: next(iter(parallel([delayed(function)(value)]))),
            lambda function, values: list(parallel(delayed(function)(array, value) for value in values)),
        )
