"""Once a minute the fleet is made large enough for the work of all packages, and hosts without workers are reported."""

from collections.abc import Sequence

import pytest

from cloudpar_master.core.fleet_size import UNREAD, Work
from cloudpar_master.core.shortage import NO_SHORTAGE, SHORT_S, Shortage
from cloudpar_master.ports import AccountRecord, FleetSize, WorkerRecord
from cloudpar_master.ports.fleet import StandingFleet
from cloudpar_master.services import fleet_keeper
from cloudpar_master.services.fleet_keeper import FleetKeeper, MissingHosts, SilentFleet
from support.world import World


class Recorded(StandingFleet):
    """A fleet that records what it should grow for."""

    def __init__(self) -> None:
        self.asked: list[list[Work]] = []
        self.found = FleetSize()
        self.noted: list[Shortage] = []

    def grow(self, works: Sequence[Work]) -> None:
        self.asked.append(list(works))

    def size(self, works: Sequence[Work]) -> FleetSize:
        return self.found

    def shortage(self) -> Shortage:
        return self.noted[-1] if self.noted else NO_SHORTAGE

    def note(self, shortage: Shortage) -> None:
        self.noted.append(shortage)


@pytest.fixture
def fleet() -> Recorded:
    return Recorded()


@pytest.fixture
def keeper(world: World, fleet: Recorded) -> FleetKeeper:
    return FleetKeeper(world.backend._replace(fleet=fleet))


def test_without_packages_no_host_is_needed(keeper: FleetKeeper, fleet: Recorded) -> None:
    keeper.tick()
    assert fleet.asked == [[]]


def test_all_running_packages_count(keeper: FleetKeeper, fleet: Recorded, world: World, ann: AccountRecord) -> None:
    world.start(ann, 3, chunksize=1)
    world.start(world.account("eve"), 4, chunksize=1)
    world.cancel(ann, world.start(ann, 5, chunksize=1))
    keeper.tick()
    assert sorted(work.parts for work in fleet.asked[0]) == [3, 4]


def test_packages_whose_heads_are_not_read_count_as_a_chunk_each(
    keeper: FleetKeeper, fleet: Recorded, world: World, ann: AccountRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_keeper, "HEADS", 1)
    for _ in range(3):
        world.start(ann)
    keeper.tick()
    assert fleet.asked[0][1:] == [UNREAD, UNREAD]


def report(world: World, host: str) -> None:
    """Let a worker of a host send a request."""
    world.backend.registry.note(WorkerRecord(f"worker of {host}", world.clock.now(), host=host))


def tick_after(world: World, keeper: FleetKeeper, seconds: float) -> None:
    world.clock.move(seconds)
    keeper.tick()


def test_hosts_without_a_worker_are_reported_each_minute_until_one_works(
    keeper: FleetKeeper, fleet: Recorded, world: World
) -> None:
    fleet.found = FleetSize(needed=2, wanted=2, running=frozenset({"i-1", "i-2"}))
    keeper.tick()
    tick_after(world, keeper, SHORT_S - 1)
    for _ in range(3):
        with pytest.raises(SilentFleet, match="2 hosts of the fleet run, and workers of only 0 reach"):
            tick_after(world, keeper, 1)
    report(world, "i-2")
    keeper.tick()
    assert fleet.shortage() == Shortage(since=world.clock.now(), working=1)
    report(world, "i-1")
    keeper.tick()
    assert fleet.shortage() == NO_SHORTAGE


def test_hosts_that_end_themselves_stay_reported_while_work_waits(
    keeper: FleetKeeper, fleet: Recorded, world: World
) -> None:
    fleet.found = FleetSize(needed=1, wanted=1, running=frozenset({"i-1"}))
    keeper.tick()
    fleet.found = FleetSize(needed=1)
    with pytest.raises(MissingHosts, match="needs 1 hosts, the fleet wants 0, and 0 run"):
        tick_after(world, keeper, SHORT_S)


def test_a_worker_on_another_machine_hides_no_silent_host(keeper: FleetKeeper, fleet: Recorded, world: World) -> None:
    fleet.found = FleetSize(needed=1, wanted=1, running=frozenset({"i-1"}))
    keeper.tick()
    world.clock.move(SHORT_S)
    report(world, "laptop")
    with pytest.raises(SilentFleet):
        keeper.tick()


def test_hosts_that_run_without_work_are_reported_if_they_are_silent(
    keeper: FleetKeeper, fleet: Recorded, world: World
) -> None:
    fleet.found = FleetSize(running=frozenset({"i-1"}))
    keeper.tick()
    with pytest.raises(SilentFleet):
        tick_after(world, keeper, SHORT_S)


def test_hosts_that_aws_does_not_start_are_reported(keeper: FleetKeeper, fleet: Recorded, world: World) -> None:
    fleet.found = FleetSize(needed=3, wanted=3, running=frozenset({"i-1"}))
    report(world, "i-1")
    keeper.tick()
    world.clock.move(SHORT_S)
    report(world, "i-1")
    with pytest.raises(MissingHosts, match="needs 3 hosts, the fleet wants 3, and 1 run"):
        keeper.tick()


def test_a_keeper_in_a_new_process_goes_on_where_the_last_one_was(
    keeper: FleetKeeper, fleet: Recorded, world: World
) -> None:
    fleet.found = FleetSize(needed=1)
    keeper.tick()
    with pytest.raises(MissingHosts):
        tick_after(world, FleetKeeper(world.backend._replace(fleet=fleet)), SHORT_S)


def test_the_fleet_is_asked_to_grow_although_it_is_reported(keeper: FleetKeeper, fleet: Recorded, world: World) -> None:
    fleet.found = FleetSize(needed=1)
    keeper.tick()
    with pytest.raises(MissingHosts):
        tick_after(world, keeper, SHORT_S)
    assert len(fleet.asked) == 2


def test_a_look_that_changes_nothing_is_not_noted(keeper: FleetKeeper, fleet: Recorded, world: World) -> None:
    keeper.tick()
    assert fleet.noted == []
    fleet.found = FleetSize(needed=1)
    keeper.tick()
    tick_after(world, keeper, 60)
    assert len(fleet.noted) == 1
