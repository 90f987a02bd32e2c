"""Computes how many hosts (machines) a fleet needs for the work that the packages have left.

The work is computed from the heads, and not from the number of messages in the queue. A package has only the chunks of
its window in the queue, and workers have already taken some of these. So the queue may look empty although a million
tasks are left.
"""

from collections.abc import Iterable
from math import ceil
from typing import Final, NamedTuple

from . import planning
from .head import Head
from .policy import Policy

BOOT_US: Final = 120_000_000
"""About how long it takes from the request for a host until the host runs its first task, in microseconds. A fleet
grows until each executor has no more work than this. A further host would take longer to boot than it would work
afterwards."""


class HostShape(NamedTuple):
    """What a host of the fleet offers.

    Attributes:
        executors: The number of the host's executors.
        chunks_per_executor: The number of chunks for which the fleet gets one executor, while the chunks' durations are
            unknown.
    """

    executors: int
    chunks_per_executor: int


class Work(NamedTuple):
    """What a package has left to do.

    Attributes:
        parts: The largest number of executors that could work at the package at the same time.
        total_us: The likely time of all remaining tasks together; None if no duration is known yet.
        chunks: The number of chunks that the package has in the queue and at workers at the same time, if there are
            enough executors.
    """

    parts: int
    total_us: float | None
    chunks: int


UNREAD: Final = Work(parts=1, total_us=None, chunks=1)
"""Stands for a package whose head was not read."""


def work_of(head: Head, policy: Policy) -> Work:
    """Return what a package has left to do, with the settings of its deployment.

    Uncut tasks count only if the master may cut them into chunks now. While the package waits for compute time, the
    master may not cut them, so they start no machine.
    """
    if head.life.ended:
        return Work(parts=0, total_us=0.0, chunks=0)
    tasks, pace = head.tasks, head.pace
    opened = sum(each.end - each.start for each in tasks.open)
    uncut = head.uncut if head.cuttable and not tasks.draining else 0
    parts = opened + uncut if tasks.chunksize is None else len(tasks.open) + ceil(uncut / tasks.chunksize)
    # A new package has no chunk yet, and its window grows as soon as executors are idle.
    new = not (pace.measured or pace.closed)
    window = max(pace.window, planning.unmeasured_window(tasks.count, policy)) if new else pace.window
    return Work(
        parts=parts,
        total_us=(opened + uncut) * pace.mean_us if pace.measured else None,
        chunks=max(len(tasks.open), min(window, parts)),
    )


def executors_needed(work: Work, chunks_per_executor: int) -> float:
    """Return how many executors should work at a package.

    While no duration is known, the result is one executor for each `chunks_per_executor` chunks.

    >>> executors_needed(Work(parts=10_000, total_us=600e6, chunks=20), 2)
    5.0
    >>> executors_needed(Work(parts=3, total_us=7_200e6, chunks=3), 2)
    3.0
    >>> executors_needed(Work(parts=500, total_us=None, chunks=32), 2)
    16.0
    """
    wished = work.chunks / chunks_per_executor if work.total_us is None else work.total_us / BOOT_US
    return min(wished, float(work.parts))


def hosts_needed(works: Iterable[Work], shape: HostShape) -> int:
    """Return how many hosts these packages need together; at least 1 if any package has tasks left.

    >>> hosts_needed([Work(1, None, 1)], HostShape(executors=2, chunks_per_executor=2))
    1
    >>> hosts_needed([Work(10_000, 600e6, 20), Work(3, 7_200e6, 3)], HostShape(executors=4, chunks_per_executor=2))
    2
    >>> hosts_needed([Work(0, 0.0, 0)], HostShape(executors=4, chunks_per_executor=2))
    0
    """
    left = [work for work in works if work.parts]
    executors = sum(executors_needed(work, shape.chunks_per_executor) for work in left)
    # A package may have no chunk yet: without a host, it might never get one.
    return max(ceil(executors / shape.executors), 1 if left else 0)
