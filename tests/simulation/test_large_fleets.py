"""One package keeps all executors of a large fleet busy, although every tenth task lasts ten times as long."""

from .large_fleet import run


def test_long_tasks_among_short_ones_leave_no_executor_of_a_large_fleet_idle() -> None:
    """Each long task stays as a range of its own when the others of its chunk are done, so there are many ranges."""
    figures = run(workers=100, executors=8, tasks=4_000, chunksize=1, most_s=4)
    assert figures.busy >= 0.95
    assert figures.head_bytes < 32 * 1024
