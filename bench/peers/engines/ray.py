"""Ray's tasks, and its Pool with the interface of multiprocessing's."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import ray
from ray.util import multiprocessing

from bench.peers.engine import WORKERS, Engine, OnArray


@contextmanager
def _ray() -> Iterator[None]:
    """Start Ray for this process only, on the loopback address, without a dashboard."""
    ray.init(
        address="local", num_cpus=WORKERS, include_dashboard=False, log_to_driver=False, logging_level="error",
        _node_ip_address="127.0.0.1",
    )  # fmt: skip
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def tasks(array: Any) -> Iterator[Engine]:
    """Start Ray. Tasks on one machine map the object store's only copy of the array."""

    @cache
    def remote(function: Any) -> Any:
        """Make a task of any callable; ray.remote accepts no function that is written in C."""

        def task(*arguments: Any) -> Any:
            return function(*arguments)

        return ray.remote(task)

    def map_on_array(function: Any, values: Any) -> list[Any]:
        reference = ray.put(array)
        return list(ray.get([remote(function).remote(reference, value) for value in values]))

    with _ray():
        yield Engine(
            lambda function, values: list(ray.get([remote(function).remote(value) for value in values])),
            lambda function, value: ray.get(remote(function).remote(value)),
            map_on_array,
        )


def on_reference(function: OnArray, reference: Any, value: Any) -> Any:
    """Call a function with the array of the object store."""
    return function(ray.get(reference), value)


@contextmanager
def pool(array: Any) -> Iterator[Engine]:
    """Start a Pool, whose processes are Ray's actors."""
    with _ray(), multiprocessing.Pool(WORKERS) as started:
        yield Engine(
            lambda function, values: list(started.map(function, values)),
            lambda function, value: started.apply(function, (value,)),
            lambda function, values: list(started.map(partial(on_reference, function, ray.put(array)), values)),
        )
