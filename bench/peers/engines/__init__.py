"""All engines: how each library is used, and what is too much for it."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Final

from bench.peers.engine import Engine, Open


@dataclass(frozen=True)
class Peer:
    """A library, or one of several ways to use it.

    Attributes:
        name: The name that `--engines` takes.
        opens: Module and function that start it. The module is imported only in the process of a measurement.
        package: The package whose version is shown; None for the standard library.
        choice: How it is used beyond its defaults, in one sentence.
        most_tasks: The largest number of tasks that it gets in one map; rows with more tasks leave it out.
        why: The reason for this limit.
    """

    name: str
    opens: str
    package: str | None
    choice: str
    most_tasks: int = 1_000_000
    why: str = ""

    def open(self) -> Open:
        """Return the function that starts this library."""
        return partial(_start, self)


def _start(peer: Peer, array: Any) -> AbstractContextManager[Engine]:
    module, function = peer.opens.split(":")
    started: AbstractContextManager[Engine] = getattr(import_module(f"{__name__}.{module}"), function)(array)
    return started


OURS: Final = "cloudpar"
_TASK_BY_TASK: Final = "it sends each task on its own, so that a million of them take many minutes"

PEERS: Final = (
    Peer(OURS, "pool:pool", None, 'Pool("local"), which starts a master and a worker, with the defaults of map.'),
    Peer("process-pool", "standard:process_pool", None, "The defaults.", 10_000, _TASK_BY_TASK),
    Peer("process-pool-chunks", "standard:chunked_pool", None, "chunksize as multiprocessing.Pool computes it."),
    Peer("mp-pool", "standard:mp_pool", None, "The defaults; it computes the size of chunks itself."),
    Peer("loky", "loky:loky", "loky", "The reusable executor, with chunksize as multiprocessing.Pool computes it."),
    Peer("joblib", "joblib:joblib", "joblib", "The defaults: backend loky, automatic batches, memory-mapped arrays."),
    Peer("mpire", "mpire:mpire", "mpire", "keep_alive=True, as its documentation recommends for several maps."),
    Peer(
        "dask", "dask:dask", "distributed",
        "A LocalCluster of single-threaded processes without a dashboard; scatter for arguments over 1 kB; "
        "pure=False runs equal calls again.",
        10_000, _TASK_BY_TASK,
    ),
    Peer(
        "ray", "ray:tasks", "ray",
        "A remote task for each value, a single ray.get for all results, and ray.put for what tasks share.",
        10_000, _TASK_BY_TASK,
    ),
    Peer("ray-pool", "ray:pool", "ray", "ray.util.multiprocessing.Pool, which computes the size of chunks itself."),
    Peer(
        "parsl", "parsl:parsl", "parsl",
        "HighThroughputExecutor, which its documentation recommends, with one block of the LocalProvider.",
        10_000, _TASK_BY_TASK,
    ),
    Peer(
        "lithops", "lithops:lithops", "lithops",
        "FunctionExecutor on localhost; its version 1 forks processes for a map, version 2 starts one for each task.",
        1_000, "it writes files for each task, so that thousands of tasks take minutes",
    ),
    Peer(
        "executorlib", "executorlib:executorlib", "executorlib",
        "SingleNodeExecutor with block_allocation=True, which its documentation recommends for many calls.",
        10_000, _TASK_BY_TASK,
    ),
)  # fmt: skip
NAMES: Final = [peer.name for peer in PEERS]
BY_NAME: Final = {peer.name: peer for peer in PEERS}

OFFLINE: Final = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "PYTHONWARNINGS": "ignore",
}
"""Variables by which libraries report nothing to their makers and print no warnings, and Ray uses only the loopback."""
