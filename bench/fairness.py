"""Measures how long a small package takes beside a huge package of another account."""

from collections.abc import Iterator

from support.customer import Customer
from support.task_functions import ten_milliseconds

from .cluster import EXECUTORS, timed, up
from .figures import REPEATS, Figure, Part, Reading

FAIRNESS = Figure("fairness", "another account's 10 tasks beside 100,000 of 10 ms", "s", 2.0)


def run() -> Iterator[Reading]:
    """Measure several times how long the small package takes while the huge package runs.

    Each time, the small package gets new executors, because an executor runs the tasks of one account only.
    """
    with up(EXECUTORS) as cluster, Customer(cluster, "small").pool() as small, cluster.pool() as huge:
        many = huge.map(ten_milliseconds, range(100_000))
        for number in range(200):
            assert next(many) == number
        for _ in range(REPEATS):
            yield Reading(FAIRNESS.name, timed(lambda: list(small.map(ten_milliseconds, range(10)))))
        many.cancel()


PART = Part((FAIRNESS,), run)
