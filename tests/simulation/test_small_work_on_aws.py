"""Small work beside long jobs where SQS is the queue: how many tasks of the long job start before it.

SQS cannot choose among messages, and no request is held: a worker hears of a new package when it retrieves or
publishes. So these tests bound counts of tasks, not times.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aws.in_process import clients_in_process
from aws.stores import create_queues, name_of
from cloudpar_master.adapters.aws.backend import POLICY
from cloudpar_master.adapters.aws.task_queue import SqsTaskQueue
from cloudpar_master.core.planning import EXPRESS_TASKS
from cloudpar_protocol.worker_messages import Lease, RetrieveTasks, RetrieveTasksReply
from simulation.calls import SECOND, OpenSite, run_calls_beside_a_long_job, start_call
from simulation.site import Site
from support.clock import SetClock
from support.memory.stores import in_memory
from support.stores import Stores
from support.world import HOUR_US, master


@contextmanager
def on_sqs(folder: Path, clock: SetClock) -> Iterator[Stores]:
    at = clients_in_process(clock)
    urls = main, dead, express = create_queues(at, name_of(folder))
    with in_memory(folder, clock) as stores:
        yield stores._replace(queue=SqsTaskQueue(at.sqs, main, dead, clock, express))
    for url in urls:
        at.sqs.delete_queue(QueueUrl=url)


@pytest.fixture
def open_site(tmp_path: Path) -> Iterator[OpenSite]:
    with master(tmp_path, policy=POLICY, factory=on_sqs) as world:
        yield lambda *executors: Site(world, *executors, holds=False)


def started_meanwhile(site: Site, small: str, at_us: int) -> int:
    """Count the tasks of other packages that start between a package's start and its own first task."""
    first_us = site.run_until_started(small)
    return sum(at_us < other_us < first_us for (package_id, _), other_us in site.started.items() if package_id != small)


def start_behind_first_windows(site: Site) -> str:
    """Start a call, 40 s after three packages whose first windows are 96 chunks of unknown length."""
    for name in ("ann", "bob", "eve"):
        site.start(site.account(name), 3_000, 2 * SECOND)
    site.run_until(40 * SECOND)
    return site.start(site.account("kim"), 1, 10_000)


@pytest.mark.parametrize("at_us", [1_300_000, 3_050_000, 5_990_000, 9_000_000])
@pytest.mark.parametrize("executors", [(2,), (1, 1), (4,), (3, 2)])
@pytest.mark.parametrize("other", [False, True], ids=["of the same account", "of another account"])
def test_a_call_goes_before_the_chunks_of_a_long_job(
    open_site: OpenSite, executors: tuple[int, ...], at_us: int, other: bool
) -> None:
    """In a single queue it would wait until nearly all of the 30 tasks have started."""
    site = open_site(*executors)
    ann = site.account("ann")
    site.start(ann, 30, 2 * SECOND)
    site.run_until(at_us)
    small = start_call(site, ann, by_another=other)
    assert started_meanwhile(site, small, at_us) <= EXPRESS_TASKS + 2 * sum(executors)


@pytest.mark.parametrize("tasks", [10, 32, 100])
@pytest.mark.parametrize("executors", [(2,), (1, 1), (4, 4)])
def test_a_short_map_does_not_wait_for_the_long_chunks_of_another_account(
    open_site: OpenSite, executors: tuple[int, ...], tasks: int
) -> None:
    """Only its first tasks overtake them at once; the others, when their durations are known."""
    site = open_site(*executors)
    site.start(site.account("ann"), 500_000, SECOND // 100)
    site.run_until(200 * SECOND)
    small = site.start(site.account("kim"), tasks, SECOND // 100)
    assert site.run_until_done(small) <= 215 * SECOND


@pytest.mark.parametrize("executors", [(2,), (1, 1), (4,)])
def test_a_call_goes_before_the_first_windows_of_several_packages(
    open_site: OpenSite, executors: tuple[int, ...]
) -> None:
    site = open_site(*executors)
    small = start_behind_first_windows(site)
    assert started_meanwhile(site, small, 40 * SECOND) <= 2 * sum(executors)


@pytest.mark.parametrize("executors", [(1,), (2,), (1, 1)])
def test_many_calls_share_the_executors_with_a_long_job(open_site: OpenSite, executors: tuple[int, ...]) -> None:
    site = open_site(*executors)
    started, calls = run_calls_beside_a_long_job(site, sum(executors), lambda number, _: site.account(f"user {number}"))
    assert calls >= 10
    assert started >= (started + calls) // 5


@pytest.mark.parametrize("task_us", [SECOND // 10, SECOND // 2, 2 * SECOND])
def test_a_call_costs_few_requests_of_workers_that_are_busy(open_site: OpenSite, task_us: int) -> None:
    """Two workers with chunks in stock hear of it, and each sends a retrieval. The one that finds nothing stops."""
    site = open_site(2, 2)
    site.start(site.account("ann"), 3_000, task_us)
    site.run_until(60 * SECOND)
    fetches: list[int] = []
    retrieve = site.world.worker.retrieve_tasks

    def counted(request: RetrieveTasks) -> RetrieveTasksReply:
        fetches.append(len(request.besides) > 0)
        return retrieve(request)

    site.world.worker.retrieve_tasks = counted  # type: ignore[method-assign]
    for number in range(10):
        site.start(site.account(f"user {number}"), 1, 10_000)
        site.run_until(site.now_us + 5 * SECOND)
    assert sum(fetches) <= 3 * 10


@pytest.mark.parametrize("executors", [(2,), (1, 1), (4,)])
@pytest.mark.parametrize("besides", [[], ["its own"]], ids=["idle", "busy"])
def test_a_call_keeps_its_place_when_a_worker_that_cannot_run_it_retrieves_it(
    open_site: OpenSite, executors: tuple[int, ...], besides: list[str]
) -> None:
    """Such a worker idles, so it may well send the first retrieval."""
    site = open_site(*executors)
    small = start_behind_first_windows(site)
    unfit = RetrieveTasks(attempt_id="a", worker_id="unfit", executors=2, chunks=2, pythons=["3.12"], besides=besides)
    assert not site.world.worker.retrieve_tasks(unfit).leases
    assert started_meanwhile(site, small, 40 * SECOND) <= 2 * sum(executors)


def test_behind_calls_that_a_worker_cannot_run_it_gets_chunks_that_it_can(open_site: OpenSite) -> None:
    """No other worker takes the calls away."""
    world = open_site().world
    account = world.account("ann", HOUR_US)

    def retrieve(number: int) -> list[Lease]:
        asked = RetrieveTasks(attempt_id=str(number), worker_id="w", executors=1, chunks=1, pythons=["3.12"])
        return world.worker.retrieve_tasks(asked).leases

    fits = world.start(account, 32, python="3.12", chunksize=1)
    for number in range(EXPRESS_TASKS):
        assert retrieve(-number)
    for _ in range(3):
        world.start(account, 1, python="3.11")
    assert [lease.package_id for number in range(20) for lease in retrieve(number)] == [fits] * 20
