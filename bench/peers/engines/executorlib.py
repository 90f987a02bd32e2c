"""executorlib's SingleNodeExecutor."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from executorlib import SingleNodeExecutor

from bench.peers.engine import WORKERS, Engine, OnArray


def with_preset(function: OnArray, value: Any, array: Any) -> Any:
    """Call a function with the array, which executorlib passes as the argument that has its name."""
    return function(array, value)


@contextmanager
def executorlib(array: Any) -> Iterator[Engine]:
    """Start an executor. Its init_function runs once in each process, and returns arguments for all calls there."""
    preset = None if array is None else lambda: {"array": array}
    executor = SingleNodeExecutor(
        max_workers=WORKERS, block_allocation=True, hostname_localhost=True, init_function=preset
    )
    with executor:

        def map_all(function: Any, *values: Any) -> list[Any]:
            futures = [executor.submit(function, *each) for each in zip(*values, strict=True)]
            return [future.result() for future in futures]

        yield Engine(
            map_all,
            lambda function, value: executor.submit(function, value).result(),
            lambda function, values: map_all(with_preset, [function] * len(values), values),
        )
