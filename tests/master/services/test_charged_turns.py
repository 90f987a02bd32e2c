"""The master charges an account's turns for the time that workers report, and for nothing twice."""

import pytest

from cloudpar_master.ports import AccountRecord
from cloudpar_protocol.worker_messages import GiveBack, Return
from support.world import World, publication

SECOND = 1_000_000


@pytest.fixture
def used(world: World, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Note the times with which accounts are charged."""
    noted: list[tuple[str, int]] = []
    monkeypatch.setattr(world.backend.queue, "used", lambda *charge: noted.append(charge))
    return noted


@pytest.fixture
def reported(world: World, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Note the times that replace likely times of chunks."""
    noted: list[tuple[str, int]] = []
    monkeypatch.setattr(world.backend.queue, "reported", noted.extend)
    return noted


def test_a_result_is_charged_once_however_often_it_is_published(
    world: World, ann: AccountRecord, used: list[tuple[str, int]]
) -> None:
    world.start(ann, tasks=3, chunksize=3)
    lease = world.lease()
    part, rest = publication(lease, [0, 1], duration_us=SECOND), publication(lease, [2], duration_us=9, seq=1)
    for each in part, part, rest, part, rest:
        world.publish(each)
    assert used == [(ann.account_id, 2 * SECOND), (ann.account_id, 9)]


def test_of_two_results_of_a_task_the_first_is_charged(
    world: World, ann: AccountRecord, used: list[tuple[str, int]]
) -> None:
    world.start(ann, tasks=1)
    lost = world.lease("lost")
    world.clock.move(lost.lease_s + 1)
    found = world.lease("found")
    world.publish(publication(found, duration_us=5))
    world.publish(publication(lost, duration_us=SECOND))
    assert used == [(ann.account_id, 5)]


def test_time_that_a_give_back_reports_is_charged(
    world: World, ann: AccountRecord, used: list[tuple[str, int]]
) -> None:
    world.start(ann, tasks=1)
    lease = world.lease()
    back = Return(**lease.identity(), seq=0, ranges=[(0, 1)], closes=True, used_us=7)
    for _ in range(2):
        world.worker.give_back(GiveBack(worker_id="w", returns=[back]))
    assert used == [(ann.account_id, 7)]


def test_times_replace_the_likely_time_of_a_chunk_that_goes_on(
    world: World, ann: AccountRecord, reported: list[tuple[str, int]]
) -> None:
    """The queue does so itself when a chunk is closed."""
    world.start(ann, tasks=3, chunksize=3)
    lease = world.lease()
    world.publish(publication(lease, [0, 1], duration_us=SECOND))
    world.publish(publication(lease, [2], closes=True, seq=1))
    assert reported == [(lease.receipt, 2 * SECOND)]
