"""Measures the time of tasks that do nothing: many in one map, many separate submits, and a single submit."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, wait
from functools import partial

from .cluster import timed, warm
from .figures import REPEATS, Figure, Part, Reading

MAP = Figure("no-op-map", "10,000 no-op tasks by map", "s", 0.25)
SUBMITS = Figure("submits", "1,000 separate submits", "s", 0.5)
ROUND_TRIP = Figure("round-trip", "one submit().result()", "ms", 5.0)

ROUND_TRIPS = 50


def no_op(_: int) -> None:
    """Do nothing."""


def map_all(pool: Executor, chunksize: int | None) -> None:
    """Map 10,000 tasks. ProcessPoolExecutor gets a chunksize, because without it, it sends tasks one by one."""
    chunks = {} if chunksize is None else {"chunksize": chunksize}
    for _ in pool.map(no_op, range(10_000), **chunks):
        pass


def submit_all(pool: Executor) -> None:
    """Submit 1,000 tasks one by one."""
    wait([pool.submit(no_op, number) for number in range(1_000)])


def round_trip_s(pool: Executor) -> float:
    """Return the median duration of single calls, in seconds."""
    times = sorted(timed(lambda: pool.submit(no_op, 0).result()) for _ in range(ROUND_TRIPS))
    return times[len(times) // 2]


def run() -> Iterator[Reading]:
    """Measure all three figures on pools that have already run tasks."""
    with warm(no_op) as on:
        actions: list[tuple[Figure, Callable[[], object], Callable[[], object]]] = [
            (MAP, partial(map_all, on.pool, None), partial(map_all, on.peer, 100)),
            (SUBMITS, partial(submit_all, on.pool), partial(submit_all, on.peer)),
        ]
        for figure, ours, peer in actions:
            for _ in range(REPEATS):
                yield Reading(figure.name, timed(ours), timed(peer))
        time.sleep(1.0)  # the pool acknowledges packages up to a second after it has read their results
        for _ in range(REPEATS):
            yield Reading(ROUND_TRIP.name, round_trip_s(on.pool) * 1000, round_trip_s(on.peer) * 1000)


PART = Part((MAP, SUBMITS, ROUND_TRIP), run)
