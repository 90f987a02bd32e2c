"""Measures how long a client's own master, agent and executors live on after SIGKILL has killed the client."""

import subprocess
import sys
import time
from collections.abc import Iterator

import psutil

from .cluster import environment
from .figures import REPEATS, Figure, Part, Reading

ENDING = Figure("ending", "client killed in the middle: master, agent and executors gone", "s", 5.0)

CLIENT = """
import time
from cloudpar import Pool
pool = Pool(workers=2)
results = pool.map(lambda _: time.sleep(0.05), range(10_000))
next(results)
print(*pool._lifetime.cluster.pids, flush=True)
list(results)
"""


def end_s() -> float:
    """Kill a client, and return the seconds until the last process of its master and its worker has ended."""
    with subprocess.Popen(
        [sys.executable, "-c", CLIENT], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as client:
        assert client.stdout is not None
        parents = [psutil.Process(int(pid)) for pid in client.stdout.readline().split()]
        family = [*parents, *(child for parent in parents for child in parent.children(recursive=True))]
        assert len(family) == 5  # master, agent, zygote, two executors
        client.kill()
        began = time.perf_counter()
        _, alive = psutil.wait_procs(family, timeout=60)
        assert not alive, "processes outlive the client"
        return time.perf_counter() - began


def run() -> Iterator[Reading]:
    """Yield readings, each of a new client in a process of its own."""
    for _ in range(REPEATS):
        yield Reading(ENDING.name, end_s())


PART = Part((ENDING,), run)
