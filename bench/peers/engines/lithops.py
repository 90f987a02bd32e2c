"""Lithops on this machine, with its files as the storage."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from lithops import FunctionExecutor

from bench.peers.engine import WORKERS, Engine

SETTINGS = {
    "lithops": {"backend": "localhost", "storage": "localhost", "telemetry": False, "log_level": "ERROR"},
    "localhost": {"worker_processes": WORKERS, "version": 1},
}


def task_of(function: Any) -> Any:
    """Return a function with one named argument: Lithops reads the names, and some callables have none."""

    def task(value: Any) -> Any:
        return function(value)

    return task


@contextmanager
def lithops(array: Any) -> Iterator[Engine]:
    """Start an executor."""
    with FunctionExecutor(config=SETTINGS) as executor:

        def map_all(function: Any, values: Any) -> list[Any]:
            return list(executor.get_result(executor.map(task_of(function), list(values))))

        yield Engine(
            map_all,
            lambda function, value: executor.get_result(executor.call_async(task_of(function), value)),
            lambda function, values: map_all(partial(function, array), values),
        )
