"""Starts pools and clusters for the measurements: pools that have already run tasks, and clusters by `cloudpar up`."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path

from cloudpar import Pool
from cloudpar._local.cluster import LocalCluster
from support import command
from support.up import Up

EXECUTORS = 2


@dataclass(frozen=True)
class Warm:
    """A pool with a cluster of its own, and a ProcessPoolExecutor. Both have already run tasks."""

    pool: Pool
    cluster: LocalCluster
    peer: ProcessPoolExecutor


def complain(error: Exception) -> None:
    """Print that a process of the cluster has ended and is not started again."""
    os.write(2, f"bench: {error}\n".encode())


@contextmanager
def warm(function: Callable[[int], object] = abs) -> Iterator[Warm]:
    """Yield a pool and a ProcessPoolExecutor, each with two executors, after a warm-up with `function`.

    A fork server forks the processes of the ProcessPoolExecutor, because a fork of this process, which has threads, may
    hang.
    """
    with ProcessPoolExecutor(EXECUTORS, get_context("forkserver")) as peer:
        list(peer.map(function, repeat(3, 4 * EXECUTORS)))
        cluster = LocalCluster(EXECUTORS, complain)
        try:
            with Pool(cluster.endpoint, cluster.token, progress=False) as pool:
                list(pool.map(function, repeat(3, 4 * EXECUTORS), chunksize=1))
                list(pool.map(function, repeat(3, 4 * EXECUTORS)))
                yield Warm(pool, cluster, peer)
        finally:
            cluster.close()


def timed(action: Callable[[], object]) -> float:
    """Return the duration of a call in seconds."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def environment() -> dict[str, str]:
    """Return this process's environment without the user's settings. A pool then finds no profile file either."""
    return command.environment(XDG_CONFIG_HOME=os.devnull)


@contextmanager
def up(executors: int) -> Iterator[Up]:
    """Start `cloudpar up` on a free port, with temporary data."""
    with (
        tempfile.TemporaryDirectory(prefix="cloudpar-bench-") as folder,
        Up(Path(folder), executors) as cluster,
    ):
        yield cluster
