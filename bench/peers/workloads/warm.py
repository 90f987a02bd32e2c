"""Workloads that are measured on an engine which has already run the same functions."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import wraps

from bench.peers.engine import WORKERS, Engine, Open
from bench.peers.rows import Load

OnEngine = Callable[[Engine, Load], dict[str, float]]

WARM_TASKS, WARM_BYTES = 4 * WORKERS, 1_000


def no_op(_: int) -> None:
    """Do nothing."""


def warm(workload: OnEngine) -> Callable[[Open, Load], dict[str, float]]:
    """Start the engine for a workload, and run a small part of the workload before it is measured."""

    @wraps(workload)
    def started(start: Open, load: Load) -> dict[str, float]:
        small = replace(load, tasks=min(load.tasks, WARM_TASKS), size_bytes=min(load.size_bytes, WARM_BYTES))
        with start(None) as engine:
            workload(engine, small)
            return workload(engine, load)

    return started


def timed(action: Callable[[], object]) -> float:
    """Return the duration of a call in seconds."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began
