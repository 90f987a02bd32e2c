"""Decides how many chunks a worker retrieves: enough for about 0.3 s of work in each executor."""

from collections.abc import Iterable
from math import ceil
from typing import Final

HORIZON_US: Final = 300_000
"""How much work each executor should have here, in microseconds, so that it never waits for a request."""


def chunks_needed(free_in_us: Iterable[float], waiting_us: float, chunk_us: float, executors: int) -> int:
    """Return the number of chunks to retrieve, at most four for each executor.

    If more work is needed and the duration of a chunk is unknown, the number is one for each executor.

    Args:
        free_in_us: For each executor, the microseconds until it has no more work.
        waiting_us: The expected duration of all untouched tasks here together.
        chunk_us: The expected duration of a chunk; 0 if unknown.
        executors: The number of executors.

    >>> chunks_needed([0, 0], waiting_us=0, chunk_us=200_000, executors=2)
    3
    >>> chunks_needed([400_000, 0], waiting_us=300_000, chunk_us=200_000, executors=2)
    0
    """
    lack_us = sum(max(HORIZON_US - free, 0) for free in free_in_us) - waiting_us
    if lack_us <= 0:
        return 0
    if not chunk_us:
        return executors
    return min(ceil(lack_us / max(chunk_us, 1_000)), 4 * executors)


def remaining_us(mean_us: float, elapsed_us: int, queued: int) -> float:
    """Return the time that an executor probably needs for its tasks.

    A task that has run for longer than the mean is probably long, so the function expects it to need as much time again
    as it has already run.
    """
    current = mean_us - elapsed_us if elapsed_us < mean_us else float(elapsed_us)
    return current + queued * mean_us
