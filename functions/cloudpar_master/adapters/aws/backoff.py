"""Delays between the attempts of a call that AWS did not carry out."""

import random
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

ATTEMPTS = 12
FIRST_S, LONGEST_S = 0.02, 0.5
"""The wait before attempt n, counted from 0, takes at most FIRST_S * 2**n and at most LONGEST_S seconds. All waits
between ATTEMPTS attempts take at most about 4 s together, much less than the time limit of a request."""


def attempts(most: int = ATTEMPTS, *, longest_s: float = LONGEST_S) -> Iterator[int]:
    """Count attempts, and wait before each except the first.

    The upper bound of the waits doubles each time, up to `longest_s`. The waits are random, so that processes that
    failed at the same time do not try again at the same time.
    """
    for number in range(most):
        if number:
            time.sleep(random.uniform(0.0, min(longest_s, FIRST_S * 2**number)))  # noqa: S311 - jitter
        yield number


def batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Divide items into batches of at most `size` items.

    >>> [list(batch) for batch in batches([1, 2, 3], 2)]
    [[1, 2], [3]]
    """
    for first in range(0, len(items), size):
        yield items[first : first + size]
