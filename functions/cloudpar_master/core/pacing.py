"""When to ask again: adaptive delays whose total request rate is bounded, from what the master knows.

Source: the first system's adaptive request delays, which grew with every fruitless request; here the master computes
them, since it knows how much there is left to do and who else asks.
"""

from .head import Head

CLIENT_BOUNDS_S = (0.05, 5.0)
WORKER_BOUNDS_S = (0.2, 10.0)
POLLS_PER_S = 10.0
"""All idle workers together ask at most this often."""


def client_delay_s(head: Head) -> float:
    """For an awaiting client: a tenth of the time that the rest will take, so that news is seldom old."""
    rest_us = (head.tasks - head.done) * (head.mean_us or 1_000_000.0)
    return _between(rest_us / max(1, head.executors) / 10 / 1e6, CLIENT_BOUNDS_S)


def worker_delay_s(idle_workers: int) -> float:
    """For a worker that found the queue empty.

    >>> worker_delay_s(1), worker_delay_s(50), worker_delay_s(10_000)
    (0.2, 5.0, 10.0)
    """
    return _between(idle_workers / POLLS_PER_S, WORKER_BOUNDS_S)


def _between(value: float, bounds: tuple[float, float]) -> float:
    return min(max(value, bounds[0]), bounds[1])
