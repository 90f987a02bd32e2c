"""Compute time in whole microseconds: what a package reserves ahead, and what a lease may use."""

from .head import Head
from .policy import Policy

FIRST_SLICE_US = 10_000_000
MARGIN_US = 1_000_000
MOST_US = 2**62
"""A sum of times stays below this, whatever a worker reports: tables and wires hold 63 bits."""


def add_us(sum_us: int, more_us: int) -> int:
    """The sum of two times, bounded.

    >>> add_us(1, 2), add_us(MOST_US, 1) == MOST_US
    (3, True)
    """
    return min(sum_us + more_us, MOST_US)


def slice_wanted_us(head: Head, policy: Policy) -> int:
    """How much more a running package should reserve now; 0: enough.

    It asks for what the rest of its tasks is likely to take, at most some time ahead for each executor; again when a
    third of that is left; and after the account had nothing left, only once its own reserve is used up.
    """
    if head.ended or head.closed or head.slice_at > head.now:
        return 0
    free_us = head.reserved_us - head.used_us
    rest = head.tasks - head.done
    if rest == 0:
        return max(0, -free_us)
    if head.wall:
        return max(MARGIN_US, -free_us) if free_us <= 0 else 0
    if head.measured:
        likely_us = add_us(round(head.mean_us * rest * 1.2), MARGIN_US)
        ahead_us = min(likely_us, max(1, head.executors) * policy.slice_us)
    else:
        ahead_us = FIRST_SLICE_US
    return min(ahead_us - free_us, MOST_US) if free_us < ahead_us // 3 else 0


def budget_us(head: Head, account_free_us: int) -> int:
    """How long a task of this package may run until the account has nothing left; at least 0."""
    return max(0, account_free_us + head.reserved_us - head.used_us)
