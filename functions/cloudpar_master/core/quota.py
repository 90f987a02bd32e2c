"""Computes how much compute time a package reserves ahead, and how much a lease may use, in whole microseconds."""

from .head import Head
from .policy import Policy

FIRST_SLICE_US = 10_000_000
"""How many unused microseconds of reserve a package should have while the duration of its tasks is unknown."""

MARGIN_US = 1_000_000
"""How many microseconds a package requests beyond what its remaining tasks are likely to take. If a task takes a little
longer, the package then needs no further slice."""

MOST_US = 2**62
"""The largest sum of times, in microseconds. A larger sum is reduced to this value, because tables and messages hold
signed 64-bit integers."""


def add_us(sum_us: int, more_us: int) -> int:
    """Add two times. The result is at most MOST_US.

    >>> add_us(1, 2), add_us(MOST_US, 1) == MOST_US
    (3, True)
    """
    return min(sum_us + more_us, MOST_US)


def slice_wanted_us(head: Head, policy: Policy) -> int:
    """Return the microseconds of compute time that a package should request now; 0: none.

    A package reserves the likely time of its remaining tasks, but at most `slice_us` for each executor, so that it does
    not hold the whole quota of its account. While the duration of its tasks is unknown, this amount is FIRST_SLICE_US.
    The package requests more only when its reserve has less than a third of this amount left. If the last request was
    useless (`exhausted`), the package first uses up its reserve, and then requests at least MARGIN_US. If no task
    remains, it requests only what its tasks have used beyond the reserve. A package that has ended, is closed, or has
    to wait until `ask_again_at` requests nothing.
    """
    tasks, own, pace = head.tasks, head.quota, head.pace
    if head.life.ended or pace.closed or own.ask_again_at > head.now:
        return 0
    free_us = own.reserved_us - own.used_us
    rest = tasks.count - tasks.done
    if rest == 0:
        return max(0, -free_us)
    if own.exhausted:
        return max(MARGIN_US, -free_us) if free_us <= 0 else 0
    if pace.measured:
        likely_us = add_us(round(pace.mean_us * rest * 1.2), MARGIN_US)
        ahead_us = min(likely_us, max(1, pace.executors) * policy.slice_us)
    else:
        ahead_us = FIRST_SLICE_US
    return min(ahead_us - free_us, MOST_US) if free_us < ahead_us // 3 else 0


def budget_us(head: Head, account_free_us: int) -> int:
    """Return the microseconds that a package may use until its reserve and its account's free time are used up.

    The result is at least 0.
    """
    return max(0, account_free_us + head.quota.reserved_us - head.quota.used_us)
