"""Parsl's HighThroughputExecutor, on this machine. It would send the array again with each task, so it gets none."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from parsl import Config, DataFlowKernel, python_app
from parsl.executors import HighThroughputExecutor
from parsl.providers import LocalProvider

from bench.peers.engine import WORKERS, Engine


@contextmanager
def parsl(_: Any) -> Iterator[Engine]:
    """Start Parsl's processes. Its usage tracking is off by default."""
    executor = HighThroughputExecutor(
        address="127.0.0.1",
        max_workers_per_node=WORKERS,
        provider=LocalProvider(init_blocks=1, min_blocks=1, max_blocks=1),
    )
    with DataFlowKernel(Config(executors=[executor])) as kernel:

        @cache
        def app(function: Any) -> Any:
            return python_app(function, data_flow_kernel=kernel)

        def map_all(function: Any, values: Any) -> list[Any]:
            futures = [app(function)(value) for value in values]
            return [future.result() for future in futures]

        yield Engine(map_all, lambda function, value: app(function)(value).result())
