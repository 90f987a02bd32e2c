"""How large a chunk is and how many are open: guided self-scheduling with measured durations.

Source: Polychronopoulos and Kuck, "Guided self-scheduling", 1987, bounded above by a target time so that workers report
regularly and below by a smallest time so that the last chunks are worth their calls.
"""

from typing import NamedTuple

from .policy import Policy

UNMEASURED_CHUNK = 16
"""Tasks of a chunk while nothing is known of their length: few, since each may last an hour."""

SMALLEST_CHUNK = 20
"""The last chunks last this part of the target at least: shorter ones are not worth their calls."""

FULL_FLEET = 50
"""For so many executors chunks may be twice as long."""

SHORT_WAIT_US = 500_000
"""What lies in the queue for so long is there in time for whoever asks next."""

SMALL_PACKAGE = 32
"""So few tasks are opened at once: the second window of a small package would wait behind all large ones again."""


EXPRESS_TASKS = 4
"""Where the queue cannot choose (on AWS), chunks that start with one of so many first tasks of a package go by a queue
of their own. Few: the next package waits for these chunks."""


def first_window(tasks: int, policy: Policy) -> int:
    """How many chunks a package opens before anything is measured.

    >>> first_window(10, Policy()), first_window(1_000_000, Policy())
    (10, 8)
    """
    return max(policy.first_window, tasks if tasks <= SMALL_PACKAGE else 0)


def chunk_target_us(executors: int, policy: Policy) -> int:
    """How long chunks should last for so many executors: with two of them somebody else's task waits half as long.

    >>> cloud = Policy(chunk_target_us=10_000_000, longest_chunk_us=30_000_000)
    >>> [chunk_target_us(executors, cloud) // 1_000_000 for executors in (1, 50, 1_000)]
    [10, 20, 30]
    """
    wished_us = policy.chunk_target_us * (FULL_FLEET + executors) // FULL_FLEET
    return max(policy.chunk_target_us, min(wished_us, policy.longest_chunk_us))


class Pace(NamedTuple):
    """What is known of a package's way.

    Attributes:
        mean_us: Measured length of a task, at least 1; 0 if unknown.
        executors: Executors at work, as far as known.
        window: How many chunks may be open.
    """

    mean_us: float
    executors: int
    window: int


def chunk_size(uncut: int, tasks: int, pace: Pace, policy: Policy) -> int:
    """How many of the `uncut` tasks the next chunk takes.

    While the window is far larger than what the executors can work on, long chunks are smaller: what lies in the queue
    delays other accounts.

    Args:
        uncut: Tasks not in a chunk yet; at least 1.
        tasks: Tasks of the package.
        pace: How it goes.
        policy: Figures of the deployment.

    Returns:
        1 to uncut.

    >>> chunk_size(100_000, 100_000, Pace(10_000.0, 2, 4), Policy(chunk_target_us=200_000))
    20
    >>> chunk_size(12, 100_000, Pace(10_000.0, 2, 4), Policy(chunk_target_us=200_000))
    3
    >>> chunk_size(100_000, 100_000, Pace(10_000.0, 2, 32), Policy(chunk_target_us=2_000_000))
    38
    """
    mean_us, executors, window = pace
    if mean_us <= 0:
        wished = min(UNMEASURED_CHUNK, tasks // (16 * policy.first_window))
    else:
        share = -(-uncut // (2 * max(executors, 1)))
        worthwhile = round(policy.chunk_target_us / SMALLEST_CHUNK / mean_us)
        target_us = float(chunk_target_us(executors, policy))
        if target_us > SHORT_WAIT_US:
            target_us *= min(1.0, 1.5 * _enough(executors) / max(window, 1))
        wished = min(round(target_us / mean_us), max(share, worthwhile))
    return max(1, min(wished, uncut))


def next_window(window: int, wait_us: int, executors: int, policy: Policy) -> int:
    """How many chunks may be open from now on, given how long one of the last lay in the queue.

    It doubles up to what keeps the known executors busy, and then grows by some more: what lies in the queue delays
    other accounts. However long chunks are, they need not lie there for longer than SHORT_WAIT_US.

    >>> next_window(4, 1_000, 2, Policy()), next_window(8, 1_000, 2, Policy()), next_window(8, 100_000, 2, Policy())
    (6, 10, 8)
    >>> next_window(64, 900_000, 2, Policy()), next_window(8, 900_000, 2, Policy())
    (32, 4)
    >>> next_window(200, 1_000, 160, Policy())
    220
    """
    enough = _enough(executors)
    if wait_us < min(policy.chunk_target_us // 4, SHORT_WAIT_US):
        window = window * 2 if window < enough else window + max(1, min(executors, 8), executors // 8)
    elif wait_us > min(2 * policy.chunk_target_us, 4 * SHORT_WAIT_US):
        window = max(window // 2, enough)
    return max(1, min(window, policy.largest_window))


def _enough(executors: int) -> int:
    return executors + 2
