"""One package keeps all executors of a large fleet busy, although every tenth task lasts ten times as long."""

from collections.abc import Callable

import pytest

from support.scale import SCALE

from .large_fleet import run

FLEETS = [(50, 8, 8_000), (125, 8, 22_000), (50, 200, 200_000)]
"""For each fleet: the workers, the executors of each worker, and the tasks."""

EFFICIENCY = 0.95

pytestmark = pytest.mark.timeout(SCALE(120, 7_200))  # 10,000 executors take three quarters of an hour of a core


@pytest.mark.parametrize(("workers", "executors", "tasks"), SCALE(FLEETS[:1], FLEETS))
def test_g30_a_package_with_some_long_tasks_takes_little_longer_than_on_an_ideal_fleet(
    workers: int, executors: int, tasks: int, reached: Callable[..., None]
) -> None:
    figures = run(workers, executors, tasks)
    assert figures.efficiency >= EFFICIENCY
    assert figures.tasks_run == tasks
    reached(f"{workers * executors:,} executors: {figures.efficiency:.1%} of the ideal speed")


def test_g30_long_tasks_among_short_ones_leave_no_executor_of_a_large_fleet_idle() -> None:
    """Each long task stays as a range of its own when the others of its chunk are done, so there are many ranges."""
    figures = run(workers=100, executors=8, tasks=4_000, chunksize=1, most_s=4)
    assert figures.busy >= EFFICIENCY
    assert figures.head_bytes < 32 * 1024
