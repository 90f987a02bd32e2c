"""Once a minute the fleet is made large enough for the work of all packages, and hosts without workers are reported."""

from collections.abc import Sequence

import pytest

from cloudpar_master.core.fleet_size import UNREAD, Work
from cloudpar_master.ports import AccountRecord, FleetSize, WorkerRecord
from cloudpar_master.ports.fleet import StandingFleet
from cloudpar_master.services import fleet_keeper
from cloudpar_master.services.fleet_keeper import SILENT_S, FleetKeeper, SilentFleet
from master.services.world import World


class Recorded(StandingFleet):
    """A fleet that records what it should grow for."""

    def __init__(self) -> None:
        self.asked: list[list[Work]] = []
        self.found: FleetSize | None = FleetSize(wanted=0, running=0)

    def grow(self, works: Sequence[Work]) -> None:
        self.asked.append(list(works))

    def size(self) -> FleetSize | None:
        return self.found


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


def test_hosts_without_a_worker_are_reported(keeper: FleetKeeper, fleet: Recorded, world: World) -> None:
    fleet.found = FleetSize(wanted=2, running=2)
    keeper.tick()
    world.clock.move(SILENT_S - 1)
    keeper.tick()
    world.clock.move(1)
    with pytest.raises(SilentFleet, match="2 hosts run"):
        keeper.tick()
    world.backend.registry.note(WorkerRecord("w", world.clock.now()))
    keeper.tick()
    world.clock.move(SILENT_S)
    keeper.tick()  # the worker is gone: from now on, the hosts have SILENT_S again


@pytest.mark.parametrize("found", [None, FleetSize(wanted=3, running=0)])
def test_hosts_that_do_not_run_are_not_silent(
    keeper: FleetKeeper, fleet: Recorded, world: World, found: FleetSize | None
) -> None:
    fleet.found = found
    for _ in range(3):
        keeper.tick()
        world.clock.move(SILENT_S)
