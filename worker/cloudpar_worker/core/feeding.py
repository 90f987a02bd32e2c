"""How many tasks an executor is fed: enough that it never waits, few enough that others can have the rest."""

from collections.abc import Callable, Iterable
from typing import Final

from cloudpar_protocol.worker_messages import Lease

from .durations import PackageDurations
from .executor_record import ExecutorRecord

OVERHEAD_US: Final = 6.0
"""What a task costs its executor besides its own time."""
AHEAD_US: Final = 100_000
"""Work queued at an executor beyond the task that runs, after feeding; it is fed again at half of that.

The longer, the fewer wake-ups (see LINGER_US); what waits behind a long task is recalled after that time.
"""
ONE_AHEAD_US: Final = 50_000
"""Tasks longer than this are fed one at a time."""
UNDIVIDED_US: Final = 4_000
"""Less work than this is not divided: each further executor costs a message each way, and mostly a publication."""
GROWTH: Final = 16
"""How many times as many tasks as were measured are fed at most: the first ones may be shorter than all others."""
RUN_TASKS: Final = 2_000
RUN_BYTES: Final = 4 * 1024 * 1024


def run_tasks(executor: ExecutorRecord, durations: PackageDurations, item_bytes: int, share: int) -> int:
    """How many tasks of a package to feed now; 0: it has enough.

    `share` is what it may still have of what is ready: the last tasks are spread over all executors.
    """
    queued = executor.queued()
    idle = executor.running is None
    mean_us = durations.mean_us
    if not mean_us or mean_us >= ONE_AHEAD_US:
        return 1 if idle else 0
    cost_us = mean_us + OVERHEAD_US
    ahead_us = queued * cost_us
    if ahead_us > AHEAD_US / 2 or share <= 0:
        return 0
    tasks = int((AHEAD_US - ahead_us) / cost_us)
    if durations.samples and durations.samples < RUN_TASKS:
        tasks = min(tasks, GROWTH * durations.samples - queued)
        if tasks <= 0:
            return 0
    if item_bytes:
        tasks = min(tasks, RUN_BYTES // item_bytes)
    return max(min(tasks, share, RUN_TASKS), 1)


def undivided_tasks(durations: PackageDurations) -> int:
    """How many tasks go to one executor although others are free, since they are done sooner than they are divided."""
    return int(UNDIVIDED_US / (durations.mean_us + OVERHEAD_US)) if durations.mean_us else 0


LINGER_US: Final = 50_000


def linger_us(executors: Iterable[ExecutorRecord], durations_of: Callable[[Lease], PackageDurations]) -> int:
    """How long results may lie unread: while every executor has work for twice as long.

    Being woken is most of what a short task costs the agent.
    """
    shortest = float(2 * LINGER_US)
    for executor in executors:
        run = executor.running
        if run is None:
            return 0
        shortest = min(shortest, executor.queued() * (durations_of(run.record.lease).mean_us + OVERHEAD_US / 2))
    return int(shortest / 2)
