"""Decides how many tasks an executor gets: enough to be busy, and few enough to leave some for other executors."""

from collections.abc import Callable, Iterable
from typing import Final

from cloudpar_protocol.worker_messages import Lease

from .durations import PackageDurations
from .executor_record import ExecutorRecord

OVERHEAD_US: Final = 6.0
"""The time that an executor needs for each task besides the task itself, in microseconds."""
AHEAD_US: Final = 100_000
"""How much work is queued at an executor behind the running task, in microseconds. When less than half of this is
queued, the executor gets more tasks.

The more work is queued, the less often the agent has to wake up (see LINGER_US). If the running task turns out to be
long, the queued tasks are recalled, so they lose little time.
"""
ONE_AHEAD_US: Final = 50_000
"""If the tasks of a package take at least this long on average, in microseconds, the agent feeds them one at a time,
each to an idle executor.
"""
UNDIVIDED_US: Final = 4_000
"""Work shorter than this, in microseconds, goes to one executor: each further executor costs a message in each
direction, and often a publication.
"""
GROWTH: Final = 16
"""For each task of a package that has been measured, an executor may have this many tasks of the package queued. This
limit holds until RUN_TASKS tasks of the package have been measured, because the first tasks may be shorter than the
rest. While no task has been measured, there is no such limit: the agent then computes the number from the master's
mean, or from the mean of the function's earlier packages.
"""
RUN_TASKS: Final = 2_000
"""The most tasks that an executor gets together, as one run; further tasks come in the next run."""
RUN_BYTES: Final = 4 * 1024 * 1024
"""The approximate limit of the task data in one run, in bytes. It is approximate because it uses the mean size of a
task's data. A run has at least one task, however large its data is.
"""


def run_tasks(executor: ExecutorRecord, durations: PackageDurations, item_bytes: int, share: int) -> int:
    """Return the number of tasks of a lease to feed to an executor now; 0 if it has enough, or has got its share.

    `share` is the number of the lease's ready tasks that this executor may still get. It spreads the last tasks of a
    lease over all executors.
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
    """Return the number of tasks that one executor gets even if others are free, because dividing them is slower.

    It is 0 if the mean duration is unknown, or if it is UNDIVIDED_US or more.
    """
    return int(UNDIVIDED_US / (durations.mean_us + OVERHEAD_US)) if durations.mean_us else 0


LINGER_US: Final = 50_000
"""The longest time for which the agent leaves results unread on purpose, in microseconds."""


def linger_us(executors: Iterable[ExecutorRecord], durations_of: Callable[[Lease], PackageDurations]) -> int:
    """Return the time for which results may stay unread: half of the time until an executor is idle; at most LINGER_US.

    Without such a pause the agent would wake up for each short task, which would take most of its time.
    """
    shortest = float(2 * LINGER_US)
    for executor in executors:
        run = executor.running
        if run is None:
            return 0
        shortest = min(shortest, executor.queued() * (durations_of(run.record.lease).mean_us + OVERHEAD_US / 2))
    return int(shortest / 2)
