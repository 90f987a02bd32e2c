"""Measures 500 factorizations on two executors, and the processor time of master, agent and client meanwhile."""

import time
from collections.abc import Iterator

import psutil

from cloudpar.demo.factorization import calibrate, correct, factorize, problem

from .cluster import EXECUTORS, Warm, timed, warm
from .figures import REPEATS, Figure, Part, Reading

EFFICIENCY = Figure("efficiency", "500 factorizations on 2 executors, efficiency", "", 0.95, at_least=True)
SHARE = Figure("cpu-share", "master, agent and client, of the CPU time", "%", 3.0)

TASKS, SEED = 500, 1


def cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


class Usage:
    """The processor time that all processes of a pool have used since this object was made."""

    def __init__(self, on: Warm) -> None:
        master, agent = (psutil.Process(pid) for pid in on.cluster.pids)
        self._overhead = [psutil.Process(), master, agent]
        self._executors = agent.children(recursive=True)
        self._before = self._now()

    def _now(self) -> tuple[float, float]:
        return sum(map(cpu_s, self._overhead)), sum(map(cpu_s, self._executors))

    def share(self) -> float:
        """Return the percentage of this processor time that master, agent and client used. Executors used the rest."""
        overhead_s, executors_s = (now - then for now, then in zip(self._now(), self._before, strict=True))
        return 100 * overhead_s / (overhead_s + executors_s)


def run() -> Iterator[Reading]:
    """Measure on pools that have already run tasks.

    ProcessPoolExecutor does not report how long its tasks run, so its efficiency is computed from the time that the
    same tasks run on the pool.
    """
    numbers = problem(TASKS, calibrate(TASKS), SEED)
    with warm(factorize) as on:
        for _ in range(REPEATS):
            peer_s = timed(lambda: list(on.peer.map(factorize, numbers)))
            usage, began = Usage(on), time.perf_counter()
            results = list(on.pool.map(factorize, numbers))
            wall_s = time.perf_counter() - began
            share = usage.share()
            assert correct(numbers, results)
            report = on.pool.last_report
            assert report is not None
            yield Reading(
                EFFICIENCY.name, report.execute_s / (EXECUTORS * wall_s), report.execute_s / EXECUTORS / peer_s
            )
            yield Reading(SHARE.name, share)


PART = Part((EFFICIENCY, SHARE), run)
