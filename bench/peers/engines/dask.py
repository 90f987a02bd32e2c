"""Dask's distributed scheduler, on this machine."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from distributed import Client, LocalCluster

from bench.peers.engine import WORKERS, Engine

SMALL_BYTES = 1_000
"""The largest argument that travels inside the task graph. joblib's backend for Dask has the same limit."""


@contextmanager
def dask(array: Any) -> Iterator[Engine]:
    """Start a cluster. The client scatters large arguments: Dask's best practices keep them out of the task graph."""
    cluster = LocalCluster(
        n_workers=WORKERS, threads_per_worker=1, dashboard_address=None, host="127.0.0.1", silence_logs=40
    )
    with cluster, Client(cluster) as client:

        def map_all(function: Any, values: Any) -> list[Any]:
            # All values of a row have the same size. Without hash=False the client would hash them all.
            large = len(values) > 0 and sys.getsizeof(values[0]) > SMALL_BYTES
            arguments = client.scatter(list(values), hash=False) if large else values
            return list(client.gather(client.map(function, arguments, pure=False)))

        def map_on_array(function: Any, values: Any) -> list[Any]:
            scattered = client.scatter(array, hash=False)
            return list(client.gather([client.submit(function, scattered, value, pure=False) for value in values]))

        yield Engine(
            map_all,
            lambda function, value: client.submit(function, value, pure=False).result(),
            map_on_array,
        )
