"""Publications that wait in the inbox for the next fold, as on AWS while a package has many workers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from cloudpar_master.core.effects import LATE_PAUSES
from cloudpar_master.core.events import Published
from cloudpar_master.ports import AccountRecord
from cloudpar_master.services.folding import LIGHT_BYTES, Folding
from cloudpar_protocol.worker_messages import Lease
from support.packages import inbox
from support.watched_world import WatchedWorld
from support.world import POLICY, World, all_results, master, publication

PAUSE_S = 10.0
PAUSING = replace(POLICY, fold_pause_s=PAUSE_S, many_workers=2, saves_first_sent=True, send_again_s=60.0)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with master(tmp_path, policy=PAUSING) as made:
        yield made


@pytest.fixture
def ann(world: World) -> AccountRecord:
    return world.account()


@pytest.fixture
def package_id(world: World, ann: AccountRecord) -> str:
    return world.start(ann, 40, chunksize=1)


@pytest.fixture
def leases(world: World, package_id: str) -> list[Lease]:
    """Leases of a package that two workers have published for."""
    one, two, *others = world.retrieve()
    world.publish(publication(one), worker_id="one")
    world.publish(publication(two), worker_id="two")
    return others


def calls_of(world: World, *leases: Lease, **changes: object) -> list[str]:
    """Publish the results of leases one by one, and return the writes of packages that this takes."""
    watched = WatchedWorld(world)
    watched.worker._folding._pausing = world.worker._folding._pausing
    for lease in leases:
        watched.publish(publication(lease, **changes))  # type: ignore[arg-type]
    return [call for call in watched.calls if call in {"packages.append", "packages.save"}]


def test_publications_of_many_workers_wait_for_the_next_fold(
    world: World, ann: AccountRecord, package_id: str, leases: list[Lease]
) -> None:
    assert calls_of(world, *leases[:3]) == ["packages.append"] * 3
    assert world.head(package_id).tasks.done == 2
    world.clock.move(2 * PAUSE_S)
    assert set(calls_of(world, leases[3])) == {"packages.save"}
    assert world.head(package_id).tasks.done == 6
    assert inbox(world.backend.packages, package_id) == []


def test_only_the_process_that_claims_the_next_fold_folds(world: World, package_id: str, leases: list[Lease]) -> None:
    """All others would fold for nothing."""
    world.clock.move(1.1 * PAUSE_S)
    now = world.clock.now()
    assert world.backend.packages.claim(package_id, now, now + PAUSE_S)
    assert calls_of(world, *leases[:5]) == ["packages.append"] * 5
    world.clock.move(PAUSE_S)  # the process that had claimed it has died
    assert set(calls_of(world, leases[5])) == {"packages.save"}
    assert world.head(package_id).tasks.done == 8


@pytest.mark.parametrize("workers", [1, 2])
def test_publications_of_few_workers_are_folded_at_once(world: World, package_id: str, workers: int) -> None:
    for number, lease in enumerate(world.retrieve()[:4]):
        world.publish(publication(lease), worker_id=f"worker {min(number, workers - 1)}")
    assert world.head(package_id).tasks.done == {1: 4, 2: 2}[workers]


def test_a_reader_folds_after_the_pause(world: World, ann: AccountRecord, package_id: str, leases: list[Lease]) -> None:
    for lease in leases:
        world.publish(publication(lease))
    assert len(world.status(ann, package_id).results) == 2
    world.clock.move(PAUSE_S + 0.1)
    assert all_results(world.status(ann, package_id))[-1] == leases[-1].start


def test_a_reader_without_events_claims_no_fold(
    world: World, ann: AccountRecord, package_id: str, leases: list[Lease]
) -> None:
    """Otherwise the next publications would wait for a fold that does not come."""
    world.clock.move(PAUSE_S + 0.1)
    world.status(ann, package_id)
    assert set(calls_of(world, leases[0])) == {"packages.save"}


def test_the_timer_folds_what_no_client_reads(world: World, package_id: str, leases: list[Lease]) -> None:
    for lease in leases:
        world.publish(publication(lease))
    world.clock.move(LATE_PAUSES * PAUSE_S + 0.1)
    assert world.timer.tick() == 1
    assert world.head(package_id).tasks.done == 2 + len(leases)


def test_an_idle_worker_gets_the_next_chunks_at_once(world: World, package_id: str, leases: list[Lease]) -> None:
    """The fold that cuts them for it takes the publications that wait."""
    while world.head(package_id).uncut:
        for lease in leases:
            world.publish(publication(lease))
        leases = world.retrieve("idle")
        assert leases


def test_a_process_that_does_not_know_the_package_does_not_fold_it_either(
    world: World, package_id: str, leases: list[Lease]
) -> None:
    """Otherwise each new process would try a fold at once, and a crowd brings many new processes."""
    other = World(world.backend, world.clock)
    other.publish(publication(leases[0]))
    assert world.head(package_id).tasks.done == 2
    assert len(inbox(world.backend.packages, package_id)) == 1


def test_the_loser_of_a_race_leaves_its_publication_to_the_next_fold(
    world: World, package_id: str, leases: list[Lease]
) -> None:
    world.clock.move(2 * PAUSE_S)
    loser = WatchedWorld(world)

    def save(*args: object) -> bool:
        loser.ports["packages"].instead.clear()
        Folding(world.backend).advance(package_id, due=True)  # by the timer, which claims no fold
        saved: bool = world.backend.packages.save(*args)  # type: ignore[arg-type]
        return saved

    loser.ports["packages"].instead["save"] = save
    loser.publish(publication(leases[0]))
    assert [item.key for item in inbox(world.backend.packages, package_id)] == [f"p#{leases[0].lease_id}#000000"]
    assert world.head(package_id).tasks.done == 2


def test_large_results_are_folded_at_once(world: World, leases: list[Lease]) -> None:
    """Otherwise they would be stored twice."""
    assert calls_of(world, leases[0], data=b"x" * (LIGHT_BYTES - 200)) == ["packages.append"]
    assert set(calls_of(world, leases[1], data=b"x" * (LIGHT_BYTES + 1))) == {"packages.save"}


def test_what_a_worker_gives_back_waits_if_tasks_end_often(world: World, package_id: str, leases: list[Lease]) -> None:
    """The next fold, which comes soon, divides the tasks of several give-backs among the idle workers."""
    world.give_back(leases[0], *leases[0].ranges, closes=True)
    assert len(inbox(world.backend.packages, package_id)) == 1
    world.clock.move(PAUSE_S)
    world.publish(publication(leases[1]))
    assert leases[0].start in {lease.start for lease in world.retrieve()}


def test_what_a_worker_gives_back_is_folded_at_once_if_tasks_are_long(
    world: World, package_id: str, leases: list[Lease]
) -> None:
    """Idle workers wait for it, and the next publication may come in minutes."""
    world.clock.move(PAUSE_S)
    world.publish(publication(leases[1], duration_us=600_000_000))
    world.publish(publication(leases[2]))
    assert len(inbox(world.backend.packages, package_id)) == 1
    world.give_back(leases[0], *leases[0].ranges, closes=True)
    assert inbox(world.backend.packages, package_id) == []
    assert leases[0].start in {lease.start for lease in world.retrieve("idle")}


def test_a_refusal_is_folded_at_once(world: World, package_id: str, leases: list[Lease]) -> None:
    world.publish(publication(leases[2], [], closes=True, refused="payload", message="no"))
    assert world.head(package_id).life.state == "failed"


def test_a_publication_that_is_sent_again_counts_once(
    world: World, ann: AccountRecord, package_id: str, leases: list[Lease]
) -> None:
    for lease in leases:
        world.publish(publication(lease))
        world.publish(publication(lease))
    world.clock.move(2 * PAUSE_S)
    world.publish(publication(leases[0]))
    while world.head(package_id).uncut or world.head(package_id).tasks.open:
        world.work_all()
        world.clock.move(2 * PAUSE_S)
        world.status(ann, package_id)
    status = world.status(ann, package_id)
    assert (status.state, sorted(all_results(status))) == ("completed", list(range(40)))
    assert world.record(ann.account_id).spent_us == 40_000


def test_a_head_of_a_later_time_is_folded_at_once(world: World, package_id: str, leases: list[Lease]) -> None:
    """The clock of the master that wrote it is ahead, so it may be old."""
    world.clock.move(-1.0)
    assert set(calls_of(world, leases[0])) == {"packages.save"}


def test_a_publication_is_not_forgotten_when_workers_leave_at_the_same_time(
    world: World, package_id: str, leases: list[Lease]
) -> None:
    """The process that stores it has read a head with many workers; a fold that it does not see leaves one of them."""
    late = WatchedWorld(world)

    def append(*args: object) -> None:
        late.ports["packages"].instead.clear()
        world.clock.move(PAUSING.fleet_memory_s + 1)
        alone = Published(worker_id="alone", executors=2, generation=0, results=[])
        Folding(world.backend).advance(package_id, [("alone", alone)])
        assert len(world.head(package_id).pace.fleet) == 1
        world.backend.packages.append(*args)  # type: ignore[arg-type]

    late.ports["packages"].instead["append"] = append
    late.publish(publication(leases[0]))
    assert len(inbox(world.backend.packages, package_id)) == 1
    world.clock.move(LATE_PAUSES * PAUSE_S + 0.1)
    world.timer.tick()
    assert inbox(world.backend.packages, package_id) == []


def test_readers_do_not_save_a_head_that_only_waits_for_events(tmp_path: Path) -> None:
    """Large heads cost many units of writing, and the next publication would wait for the fold after it."""
    with master(tmp_path, replace(PAUSING, fold_pause_s=1.0)) as world:
        ann = world.account()
        package_id = world.start(ann, 40, chunksize=1)
        one, two, other, *_ = world.retrieve()
        world.publish(publication(one), worker_id="one")
        world.publish(publication(two), worker_id="two")
        world.clock.move(LATE_PAUSES * 1.0 + 0.1)
        version = world.head(package_id).version
        world.status(ann, package_id)
        assert world.head(package_id).version == version
        assert set(calls_of(world, other)) == {"packages.save"}
