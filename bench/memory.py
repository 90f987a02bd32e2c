"""Measures packages of a million tasks: the time to start one, and the master's memory while it runs."""

import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from cloudpar import Pool

from .cluster import EXECUTORS, timed, up
from .figures import REPEATS, Figure, Part, Reading

START = Figure("start", "starting 1,000,000 tasks over a range, compared with 100", "", 2.0)
MEMORY = Figure("memory", "the master's peak while 1,000,000 tasks run", "MB", 150.0)

MANY, FEW = 1_000_000, 100
STARTS = 15


def peak_mb(pid: int) -> float:
    """Return the largest resident memory that a process has had so far, in MiB."""
    found = re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def start_s(pool: Pool, tasks: int) -> float:
    """Return the seconds that a call of `map` and the cancel of its package take. No worker runs the tasks."""

    def start() -> None:
        pool.map(abs, range(tasks)).cancel()

    return timed(start)


def starts() -> Iterator[Reading]:
    """Start large and small packages in turn, on a master without executors."""
    with up(0) as cluster, cluster.pool() as pool:
        start_s(pool, FEW)
        for _ in range(REPEATS):
            pairs = [(start_s(pool, MANY), start_s(pool, FEW)) for _ in range(STARTS)]
            yield Reading(START.name, median(many for many, _ in pairs) / median(few for _, few in pairs))


def run() -> Iterator[Reading]:
    """Measure both figures. The memory is measured in a single run, since only its peak counts."""
    yield from starts()
    with up(EXECUTORS) as cluster, cluster.pool() as pool:
        assert sum(1 for _ in pool.map(abs, range(MANY))) == MANY
        yield Reading(MEMORY.name, peak_mb(cluster.child("cloudpar_master").pid))


PART = Part((START, MEMORY), run)
