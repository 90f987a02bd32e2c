"""Measures large task data: 10 arguments of 5 MB."""

from collections.abc import Iterator
from concurrent.futures import Executor

from .cluster import timed, warm
from .figures import REPEATS, Figure, Part, Reading

PAYLOAD = Figure("payload", "50 MB of task data (10 x 5 MB bytes)", "s", 0.5)

VALUES = [bytes([number]) * 5_000_000 for number in range(10)]


def send(pool: Executor) -> None:
    """Send ten large arguments to tasks, which return the lengths."""
    assert list(pool.map(len, VALUES)) == [5_000_000] * 10


def run() -> Iterator[Reading]:
    """Measure on pools that have already run tasks."""
    with warm() as on:
        for _ in range(REPEATS):
            yield Reading(PAYLOAD.name, timed(lambda: send(on.pool)), timed(lambda: send(on.peer)))


PART = Part((PAYLOAD,), run)
