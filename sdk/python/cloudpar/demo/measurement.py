"""Runs the benchmark several times in each way (sequentially, on processes, on pools), and keeps the best times."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from cloudpar._formatting.quantity import quantity
from cloudpar._local.cluster import LocalCluster
from cloudpar._local.programs import default_workers
from cloudpar.errors import LocalClusterFailed
from cloudpar.pool import Pool
from cloudpar.report import Report

from .factorization import correct, factorize

EXECUTORS = (1, 2, 4)
PROCESSES = 2

Advance = Callable[[str], None]
"""A function that is called after each task, with the name of the current run."""


@dataclass(frozen=True)
class Run:
    """One run of all tasks on a warm pool. `wall_s` is the time from the call of `map` to the last result."""

    executors: int
    wall_s: float
    report: Report

    @property
    def efficiency(self) -> float:
        """The share of their time that the executors spent in tasks."""
        return self.report.execute_s / (self.executors * self.wall_s)


@dataclass(frozen=True)
class Measurement:
    """The demo's results. Each time is the best of the repeats."""

    tasks: int
    largest: int
    seed: int
    cores: int
    results_correct: bool
    sequential_s: float
    process_pool_s: float
    runs: tuple[Run, ...]

    def speedup(self, wall_s: float) -> float:
        """Return the time of the sequential run, divided by `wall_s`."""
        return self.sequential_s / wall_s


def measure(numbers: list[int], repeats: int, advance: Advance, *, largest: int, seed: int) -> Measurement:
    """Run the tasks in each way: sequentially, on a process pool, and on pools with each number of executors."""
    all_correct = True

    def timed(name: str, start: Callable[[], Iterable[tuple[int, int]]]) -> float:
        nonlocal all_correct
        started_at, results = time.perf_counter(), []
        for result in start():
            results.append(result)
            advance(name)
        wall_s = time.perf_counter() - started_at
        all_correct = all_correct and correct(numbers, results)
        return wall_s

    def best_run(executors: int) -> Run:
        with _warm_pool(executors) as pool:
            runs = []
            for _ in range(repeats):
                wall_s = timed(f"cloudpar, {quantity(executors, 'executor')}", lambda: pool.map(factorize, numbers))
                runs.append(Run(executors, wall_s, _report(pool)))
            return min(runs, key=lambda run: run.wall_s)

    sequential_s = min(timed("sequential", lambda: map(factorize, numbers)) for _ in range(repeats))
    # The process pool runs before this process has a cloudpar pool, because Python warns when a process with threads
    # forks.
    with ProcessPoolExecutor(PROCESSES) as processes:
        list(processes.map(factorize, [15] * PROCESSES))
        process_pool_s = min(
            timed(f"ProcessPoolExecutor({PROCESSES})", lambda: processes.map(factorize, numbers))
            for _ in range(repeats)
        )
    runs = tuple(best_run(executors) for executors in EXECUTORS)
    return Measurement(
        len(numbers), largest, seed, default_workers(), all_correct, sequential_s, process_pool_s, runs
    )  # fmt: skip


@contextmanager
def _warm_pool(executors: int) -> Iterator[Pool]:
    """Yield a pool on a local master and worker after a warm-up. The endpoint in the environment is ignored."""

    def failed(error: LocalClusterFailed) -> None:
        os.write(2, f"cloudpar: {error}\n".encode())

    cluster = LocalCluster(executors, failed)
    try:
        with Pool(cluster.endpoint, cluster.token, progress=False) as pool:
            list(pool.map(factorize, [400_009 * 400_009] * (4 * executors), chunksize=1))
            yield pool
    finally:
        cluster.close()


def _report(pool: Pool) -> Report:
    report = pool.last_report
    if report is None:
        raise AssertionError("a package that gave all its results has a report")
    return report
