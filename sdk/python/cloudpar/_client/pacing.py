"""When to ask for news again: pure arithmetic.

An embedded master answers the moment there is news, and with a package of many short tasks there always is. Each
answer costs both sides about a millisecond, so the awaiter lets some news gather: the less the longer a package has
run already (a share of that time at most), and less and less towards its end, so that the last result is not late.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from cloudpar_protocol.client_messages import Progress

LONGEST_S = 0.25
SHARE_OF_ELAPSED = 0.05
SHARE_OF_REST = 0.3
SHORTEST_S = 0.001


@dataclass(frozen=True)
class Run:
    """A package that is being handle: how far it is, and since when it runs."""

    progress: Progress
    elapsed_s: float


def gather_s(runs: Iterable[Run]) -> float:
    """How long to let news gather before the next question."""
    return min((_gather_s(run) for run in runs), default=0.0)


def _gather_s(run: Run) -> float:
    rest_s = remaining_s(run.progress)
    if rest_s is None:
        return 0.0
    pause_s = min(LONGEST_S, run.elapsed_s * SHARE_OF_ELAPSED, rest_s * SHARE_OF_REST)
    return pause_s if pause_s >= SHORTEST_S else 0.0


def remaining_s(progress: Progress) -> float | None:
    """How long the rest of a package takes, going by what is known; None if nothing is."""
    if not progress.done or not progress.mean_us or not progress.executors:
        return None
    return (progress.tasks - progress.done) * progress.mean_us / 1e6 / progress.executors
