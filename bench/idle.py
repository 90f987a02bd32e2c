"""Measures the processor time that an agent, its zygote and its executors use while they have nothing to do."""

import time
from collections.abc import Iterator

import psutil

from .cluster import EXECUTORS, up
from .factorizations import cpu_s
from .figures import Figure, Part, Reading

IDLE = Figure("idle", "an idle agent over 60 s, of one core", "%", 0.5)

IDLE_S = 60.0


def run() -> Iterator[Reading]:
    """Measure once, since one reading takes a minute."""
    with up(EXECUTORS) as cluster, cluster.pool() as pool:
        assert list(pool.map(abs, range(100))) == list(range(100))
        agent = cluster.child("cloudpar_worker")
        family = [agent, *agent.children(recursive=True)]
        before_s = used_s(family)
        time.sleep(IDLE_S)
        yield Reading(IDLE.name, 100 * (used_s(family) - before_s) / IDLE_S)


def used_s(family: list[psutil.Process]) -> float:
    """Return the processor time of the agent, its zygote and its executors."""
    return sum(map(cpu_s, family))


PART = Part((IDLE,), run)
