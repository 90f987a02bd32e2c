"""How large a chunk is and how many are open: guided self-scheduling with measured durations.

Source: Polychronopoulos and Kuck, "Guided self-scheduling", 1987, bounded above by a target time so that workers report
regularly and below by a smallest time so that the last chunks are worth their calls.
"""

from .policy import Policy

UNMEASURED_CHUNK = 16
"""Tasks of a chunk while nothing is known of their length: few, since each may last an hour."""

SMALLEST_CHUNK_US = 5_000


SMALL_PACKAGE = 32
"""So few tasks are opened at once: the second window of a small package would wait behind all large ones again."""


def first_window(tasks: int, policy: Policy) -> int:
    """How many chunks a package opens before anything is measured.

    >>> first_window(10, Policy()), first_window(1_000_000, Policy())
    (10, 8)
    """
    return max(policy.first_window, tasks if tasks <= SMALL_PACKAGE else 0)


def chunk_size(uncut: int, tasks: int, mean_us: float, executors: int, policy: Policy) -> int:
    """How many of the `uncut` tasks the next chunk takes.

    Args:
        uncut: Tasks not in a chunk yet; at least 1.
        tasks: Tasks of the package.
        mean_us: Measured length of a task, at least 1; 0 if unknown.
        executors: Executors at work, as far as known.
        policy: Figures of the deployment.

    Returns:
        1 to uncut.

    >>> chunk_size(100_000, 100_000, 10_000.0, 2, Policy(chunk_target_us=200_000))
    20
    >>> chunk_size(12, 100_000, 10_000.0, 2, Policy(chunk_target_us=200_000))
    3
    """
    if mean_us <= 0:
        wished = min(UNMEASURED_CHUNK, tasks // (16 * policy.first_window))
    else:
        share = -(-uncut // (2 * max(executors, 1)))
        worthwhile = round(SMALLEST_CHUNK_US / mean_us)
        wished = min(round(policy.chunk_target_us / mean_us), max(share, worthwhile))
    return max(1, min(wished, uncut))


def next_window(window: int, wait_us: int, executors: int, policy: Policy) -> int:
    """How many chunks may be open from now on, given how long one of the last lay in the queue.

    It doubles up to what keeps the known executors busy, and then grows by what one more of each would take: what lies
    in the queue delays other accounts.

    >>> next_window(4, 1_000, 2, Policy()), next_window(8, 1_000, 2, Policy()), next_window(8, 100_000, 2, Policy())
    (6, 10, 8)
    >>> next_window(64, 900_000, 2, Policy()), next_window(8, 900_000, 2, Policy())
    (32, 4)
    """
    enough = executors + 2
    if wait_us < policy.chunk_target_us // 4:
        window = window * 2 if window < enough else window + max(executors, 1)
    elif wait_us > 2 * policy.chunk_target_us:
        window = max(window // 2, enough)
    return min(window, policy.largest_window)
