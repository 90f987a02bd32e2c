"""Lithops on this machine, with its files as the storage."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lithops import FunctionExecutor

from bench.peers.engine import WORKERS, Engine

SETTINGS = {
    "lithops": {"backend": "localhost", "storage": "localhost", "telemetry": False, "log_level": "ERROR"},
    "localhost": {"worker_processes": WORKERS, "version": 1},
}


@contextmanager
def lithops(array: Any) -> Iterator[Engine]:
    """Start an executor. The tasks are functions of their own, because Lithops looks up the names of arguments."""
    with FunctionExecutor(config=SETTINGS) as executor:

        def map_all(function: Any, values: Any) -> list[Any]:
            def task(value: Any) -> Any:
                return function(value)

            return list(executor.get_result(executor.map(task, list(values))))

        def call(function: Any, value: Any) -> Any:
            def task(value: Any) -> Any:
                return function(value)

            return executor.get_result(executor.call_async(task, value))

        def map_on_array(function: Any, values: Any) -> list[Any]:
            return map_all(lambda value: function(array, value), values)

        yield Engine(map_all, call, map_on_array)
