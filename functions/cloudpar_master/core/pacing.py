"""When a caller sends its next request: adaptive delays that bound the total rate of requests.

The master computes them, since it knows how much is left to do and how many other callers there are.
"""

from . import planning
from .head import Head
from .policy import Policy

CLIENT_BOUNDS_S = (0.05, 5.0)
WORKER_BOUNDS_S = (0.2, 30.0)
YOUNG_S = 0.2
POLLS_PER_S = 8.0
"""Requests a second that all idle workers together send at most."""


def client_delay_s(head: Head, now: float) -> float:
    """Return the delay of a client that awaits a package: a tenth of the time that the rest will take.

    The client then seldom reads results late. A young package may end much sooner than estimated, because little is
    known about it, so its age bounds the delay.
    """
    tasks, pace = head.tasks, head.pace
    rest_us = (tasks.count - tasks.done) * (pace.mean_us or 1_000_000.0)
    rest_s, age_s = rest_us / max(1, pace.executors) / 1e6, max(0.0, now - head.started_at)
    return _between(min(rest_s / 10, YOUNG_S + age_s / 2), CLIENT_BOUNDS_S)


SHORTEST_COLLECTION_US = 200_000
"""For how long workers collect results at least, because each publication costs a fold."""


def collect_us(executors: int, head: Head, budget_us: int, policy: Policy) -> int:
    """Return for how long a worker with this many executors may collect results while all of them have work.

    In that time the worker finishes about one chunk, so a chunk costs one publication. Towards the end of the quota the
    time is short: until the master learns of their time, tasks may run beyond the quota, and no account pays for that.
    """
    chunk_us = planning.chunk_target_us(head.pace.executors, policy) // executors
    scarce = budget_us < 3 * chunk_us * max(executors, head.pace.executors)
    return SHORTEST_COLLECTION_US if scarce else max(SHORTEST_COLLECTION_US, chunk_us)


def worker_delay_s(idle_workers: int) -> float:
    """Return the delay of a worker that found the queue empty.

    >>> worker_delay_s(1), worker_delay_s(40), worker_delay_s(10_000)
    (0.2, 5.0, 30.0)
    """
    return _between(idle_workers / POLLS_PER_S, WORKER_BOUNDS_S)


def _between(value: float, bounds: tuple[float, float]) -> float:
    return min(max(value, bounds[0]), bounds[1])
