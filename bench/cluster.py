"""Warm pools, and clusters that are started by `cloudpar up`, for the measurements."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from multiprocessing import get_context

import psutil

from cloudpar import Pool
from cloudpar._local.cluster import LocalCluster

EXECUTORS = 2


@dataclass(frozen=True)
class Warm:
    """A pool with a cluster of its own and a ProcessPoolExecutor. All executors have already run a task."""

    pool: Pool
    cluster: LocalCluster
    peer: ProcessPoolExecutor


def complain(error: Exception) -> None:
    """Report that a process of the cluster keeps ending."""
    os.write(2, f"bench: {error}\n".encode())


@contextmanager
def warm(function: Callable[[int], object] = abs) -> Iterator[Warm]:
    """Yield both pools, each with two executors. A server forks the peer's: forks of threaded processes may hang."""
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
    """Return this process's environment without the user's configuration of Cloud Parallelizer."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CLOUDPAR_")}
    return clean | {"XDG_CONFIG_HOME": os.devnull}


class Up:
    """`cloudpar up --json` on a free port, with temporary data."""

    def __init__(self, executors: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="cloudpar-bench-")
        command = ["up", "--workers", str(executors), "--port", "0", "--data", self._folder.name, "--json"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cloudpar", *command],
            env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        if self.process.stdout is None:
            raise AssertionError
        self.connection: dict[str, str] = json.loads(self.process.stdout.readline())
        self.endpoint = self.connection["endpoint"]

    def pool(self, token: str | None = None) -> Pool:
        """Open a pool with the default account, or with another one's token."""
        return Pool(self.endpoint, token or self.connection["token"], progress=False)

    def account(self, name: str) -> str:
        """Create an account and return its token."""
        command = ["account", "create", name, "--quota", "1000h", "--endpoint", self.endpoint, "--json"]
        made = subprocess.run(
            [sys.executable, "-m", "cloudpar", *command, "--admin-token", self.connection["admin_token"]],
            env=environment(), stdout=subprocess.PIPE, check=True,
        )  # fmt: skip
        token: str = json.loads(made.stdout)["token"]
        return token

    def child(self, module: str) -> psutil.Process:
        """Return the process that runs `python -m module`."""
        return next(child for child in psutil.Process(self.process.pid).children() if module in child.cmdline())

    def close(self) -> None:
        """Kill the cluster without waiting for running tasks."""
        self.process.kill()
        self.process.communicate()
        self._folder.cleanup()


@contextmanager
def up(executors: int) -> Iterator[Up]:
    cluster = Up(executors)
    try:
        yield cluster
    finally:
        cluster.close()
