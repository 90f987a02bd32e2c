"""Small work beside long jobs: it starts on the next free executor, within one task's time and SLACK_US."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from simulation.calls import SECOND, OpenSite, run_calls_beside_a_long_job, start_call
from simulation.site import Site
from support.memory.stores import in_memory
from support.world import master

SLACK_US = 200_000


@pytest.fixture
def open_site(tmp_path: Path) -> Iterator[OpenSite]:
    with master(tmp_path, factory=in_memory) as world:
        yield lambda *executors: Site(world, *executors)


MOMENTS = [700_000, 1_300_000, 2_050_000, 3_850_000, 5_990_000, 9_000_000, 10_123_456]


@pytest.mark.parametrize("at_us", MOMENTS)
@pytest.mark.parametrize("executors", [(1,), (2,), (1, 1), (3, 2)])
@pytest.mark.parametrize("chunksize", [None, 1, 4])
@pytest.mark.parametrize("other", [False, True], ids=["of the same account", "of another account"])
def test_a_call_waits_for_one_task_of_a_long_job(
    open_site: OpenSite, executors: tuple[int, ...], chunksize: int | None, at_us: int, other: bool
) -> None:
    site = open_site(*executors)
    ann = site.account("ann")
    site.start(ann, 200, 2 * SECOND, chunksize=chunksize)
    site.run_until(at_us)
    small = start_call(site, ann, by_another=other)
    assert site.run_until_started(small) - at_us <= 2 * SECOND + SLACK_US


def uneven(index: int) -> int:
    """Return a duration between 0.2 and 30 s. The mean of some tasks says nothing about the others."""
    return 200_000 * (1 + index * 7919 % 150)


@pytest.mark.parametrize("at_us", MOMENTS)
@pytest.mark.parametrize("executors", [(2,), (1, 1), (1, 1, 1, 1), (3, 2)])
@pytest.mark.parametrize("other", [False, True], ids=["of the same account", "of another account"])
def test_a_call_starts_when_the_next_executor_of_any_worker_is_free(
    open_site: OpenSite, executors: tuple[int, ...], at_us: int, other: bool
) -> None:
    site = open_site(*executors)
    ann = site.account("ann")
    site.start(ann, 500, uneven)
    site.run_until(at_us)
    free_us = site.next_end_us()
    small = start_call(site, ann, by_another=other)
    assert site.run_until_started(small) - free_us <= SLACK_US


@pytest.mark.parametrize("at_us", MOMENTS[3:])
@pytest.mark.parametrize("executors", [(2,), (1, 1), (3, 2)])
def test_a_call_beside_several_long_jobs_of_several_accounts_starts_on_the_next_free_executor(
    open_site: OpenSite, executors: tuple[int, ...], at_us: int
) -> None:
    site = open_site(*executors)
    ann, bob = site.account("ann"), site.account("bob")
    for number in range(3):
        site.start(ann, 100, (1 + number) * SECOND)
    site.start(bob, 100, 2 * SECOND)
    site.run_until(at_us)
    free_us = site.next_end_us()
    small = site.start(ann, 1, 10_000)
    assert site.run_until_started(small) - free_us <= SLACK_US


@pytest.mark.parametrize("at_us", MOMENTS)
@pytest.mark.parametrize("task_us", [1_000, 10_000, 45_000, 60_000, 150_000, 300_000])
@pytest.mark.parametrize("other", [False, True], ids=["of the same account", "of another account"])
def test_a_call_beside_a_long_job_of_short_tasks_waits_for_one_of_them(
    open_site: OpenSite, task_us: int, at_us: int, other: bool
) -> None:
    site = open_site(2)
    ann = site.account("ann")
    site.start(ann, 20_000_000 // task_us * 2, task_us)
    site.run_until(at_us)
    small = start_call(site, ann, by_another=other)
    assert site.run_until_started(small) - at_us <= task_us + SLACK_US


@pytest.mark.parametrize("executors", [(2,), (1, 1), (4,)])
def test_a_small_map_ends_before_a_long_job_goes_on(open_site: OpenSite, executors: tuple[int, ...]) -> None:
    site = open_site(*executors)
    ann = site.account("ann")
    site.start(ann, 200, 2 * SECOND)
    site.run_until(3 * SECOND)
    free_us = site.next_end_us()
    small = site.start(ann, 8, 10_000)
    assert site.run_until_done(small) - free_us <= SLACK_US


@pytest.mark.parametrize("executors", [(1,), (2,), (1, 1)])
def test_many_calls_share_the_executors_with_a_long_job(open_site: OpenSite, executors: tuple[int, ...]) -> None:
    """A call takes about as long as a task of the job, which the master cannot know before."""
    started, calls = run_calls_beside_a_long_job(open_site(*executors), sum(executors), lambda _, ann: ann)
    assert 0.25 < started / calls < 1.8
