"""Dask's distributed scheduler, on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from distributed import Client, LocalCluster

from bench.peers.engine import WORKERS, Engine


@contextmanager
def dask(array: Any) -> Iterator[Engine]:
    """Start a cluster. The client scatters the array, as Dask's best practices recommend for large arguments."""
    cluster = LocalCluster(
        n_workers=WORKERS, threads_per_worker=1, dashboard_address=None, host="127.0.0.1", silence_logs=40
    )
    with cluster, Client(cluster) as client:

        def map_on_array(function: Any, values: Any) -> list[Any]:
            scattered = client.scatter(array, hash=False)
            return list(client.gather([client.submit(function, scattered, value, pure=False) for value in values]))

        yield Engine(
            lambda function, values: list(client.gather(client.map(function, values, pure=False))),
            lambda function, value: client.submit(function, value, pure=False).result(),
            map_on_array,
        )
