"""Says how long clients and workers wait before their next request, and how long workers collect results.

These times bound the total rate of requests. The master computes them, because it knows how much work is left and how
many workers are idle.
"""

import math

from . import planning
from .head import Head
from .policy import Policy

SHORTEST_AWAIT_S = 0.05
WORKER_BOUNDS_S = (0.2, 30.0)
YOUNG_S = 0.2
POLLS_PER_S = 8.0
"""How many requests a second all idle workers together should send. WORKER_BOUNDS_S bound the delay of each worker, so
a single idle worker sends fewer requests, and more than 240 idle workers send more."""


def client_delay_s(head: Head, now: float, policy: Policy) -> float:
    """Return the seconds before the next request of a client that awaits a package.

    The delay is a tenth of the likely time of the remaining tasks. Until durations are measured, a task counts as 1 s.
    A young package may end much sooner than estimated, so the delay is at most YOUNG_S plus half of the package's age.
    SHORTEST_AWAIT_S and `longest_await_s` bound the delay in any case.
    """
    tasks, pace = head.tasks, head.pace
    rest_us = (tasks.count - tasks.done) * (pace.mean_us or 1_000_000.0)
    rest_s, age_s = rest_us / max(1, pace.executors) / 1e6, max(0.0, now - head.started_at)
    return _between(min(rest_s / 10, YOUNG_S + age_s / 2), (SHORTEST_AWAIT_S, policy.longest_await_s))


SHORTEST_COLLECTION_US = 200_000
"""The least time, in microseconds, that `collect_us` returns. If workers published more often, each publication would
cost a fold for little work."""


def collect_us(executors: int, head: Head, budget_us: int, policy: Policy) -> int:
    """Return the microseconds for which a worker may collect results while all of its executors have work.

    The time is about as long as the worker takes for one chunk, so that a chunk costs about one publication, but at
    least SHORTEST_COLLECTION_US. If little of the quota is left, the time is shorter, down to SHORTEST_COLLECTION_US.
    (With `shares_chunks`, this is also so if little of the package is left.) Only publications tell the master how much
    time tasks used. If they came late, tasks could use more than the quota, and no account pays for the excess.

    Args:
        executors: The number of the worker's executors.
        head: The package whose results the worker collects.
        budget_us: The compute time that the package may still use.
        policy: The settings of the deployment.
    """
    pace = head.pace
    if policy.shares_chunks and pace.measured:
        everyone = max(executors, pace.executors)
        rest_us = (head.tasks.count - head.tasks.done) * pace.mean_us / everyone
        target_us = planning.chunk_target_us(planning.places_of(pace, policy), policy)
        return max(SHORTEST_COLLECTION_US, int(min(target_us, rest_us / 3, budget_us / everyone / 3)))
    chunk_us = planning.chunk_target_us(pace.executors, policy) // executors
    scarce = budget_us < 3 * chunk_us * max(executors, head.pace.executors)
    return SHORTEST_COLLECTION_US if scarce else max(SHORTEST_COLLECTION_US, chunk_us)


LARGE_HEAD = 150
"""If a package has more workers than this, the pause between its folds grows in proportion to their number, because the
head is larger."""


def pause_s(head: Head, policy: Policy) -> float:
    """Return for how many seconds after a fold of this package its publications may wait in the inbox; 0: they may not.

    They may wait only if the package has run on many workers. Then the request of another worker or of a client usually
    comes soon, and with it the master folds all waiting publications. If no request comes, the timer folds them
    (effects.look_at).
    """
    if head.life.ended or not head.pace.pauses:
        return 0.0
    return policy.fold_pause_s * max(1.0, len(head.pace.fleet) / LARGE_HEAD)


def task_end_s(head: Head) -> float:
    """Return about how many seconds pass between the ends of two tasks of this package; infinity if it is not known."""
    tasks, pace = head.tasks, head.pace
    at_once = min(pace.executors, tasks.count - tasks.done)
    return pace.mean_us / 1e6 / at_once if pace.measured and at_once > 0 else math.inf


CALL_S = 5.0
"""Where the executors of a worker share chunks, all workers of a package together should send a beat or a publication
about once in this many seconds. The reply tells the worker whether express chunks wait. So this number bounds how long
such chunks wait while all workers are busy."""


SHORTEST_BEAT_S = 2.0
"""The least time between two beats of a worker, in seconds, that `beat_s` returns."""


def beat_s(head: Head, policy: Policy) -> float:
    """Return after how many seconds each of a package's workers should send a beat; 0: only the lease time decides.

    The more workers there are, the more rarely each of them sends a beat, so that all beats together cost about the
    same. Near the end of a package the workers send beats more often. The replies also say whether other workers are
    idle (`hungry`). A worker that learns this late keeps tasks that the idle workers could run. In any case a worker
    sends a beat after a third of the lease time at the latest.
    """
    if not policy.shares_chunks:
        return 0.0
    tasks, pace = head.tasks, head.pace
    call_s = CALL_S * max(1, len(pace.fleet))
    if not pace.measured:
        return call_s
    rest_s = (tasks.count - tasks.done) * pace.mean_us / max(1, pace.executors) / 1e6
    return max(SHORTEST_BEAT_S, min(call_s, rest_s / 10))


def worker_delay_s(idle_workers: int) -> float:
    """Return the seconds before the next request of a worker that got no chunks.

    >>> worker_delay_s(1), worker_delay_s(40), worker_delay_s(10_000)
    (0.2, 5.0, 30.0)
    """
    return _between(idle_workers / POLLS_PER_S, WORKER_BOUNDS_S)


def _between(value: float, bounds: tuple[float, float]) -> float:
    return min(max(value, bounds[0]), bounds[1])
