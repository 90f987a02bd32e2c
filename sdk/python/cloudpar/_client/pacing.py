"""Pure functions that compute when to request news again.

An embedded master answers as soon as there is news, and a package of many short tasks always has news. Each answer
costs both sides about a millisecond, so the awaiter pauses before it asks again, while news gathers. The pause is at
most LONGEST_S, at most a share of the time that the package has run, and at most a share of its remaining time. So the
last result is not late.
"""

from cloudpar_protocol.client_messages import Progress

LONGEST_S = 0.25
SHARE_OF_ELAPSED = 0.05
SHARE_OF_REST = 0.3
SHORTEST_S = 0.001


def gather_s(progress: Progress, elapsed_s: float) -> float:
    """Return how long to let news of a package gather, in seconds; 0 means to send the next request at once."""
    rest_s = remaining_s(progress)
    if rest_s is None:
        return 0.0
    pause_s = min(LONGEST_S, elapsed_s * SHARE_OF_ELAPSED, rest_s * SHARE_OF_REST)
    return pause_s if pause_s >= SHORTEST_S else 0.0


def remaining_s(progress: Progress) -> float | None:
    """Estimate the time until the package ends, in seconds; None if there is too little progress for an estimate."""
    if not progress.done or not progress.mean_us or not progress.executors:
        return None
    return (progress.tasks - progress.done) * progress.mean_us / 1e6 / progress.executors
