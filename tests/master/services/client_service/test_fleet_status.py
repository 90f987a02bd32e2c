"""While a package waits for its first worker, an await reports how the fleet starts, and enlarges it if need be."""

from collections.abc import Sequence

from cloudpar_master.core.fleet_size import Work
from cloudpar_master.ports import AccountRecord
from cloudpar_master.ports.fleet import StandingFleet
from cloudpar_master.services.package_awaits import LONELY_S
from cloudpar_protocol.client_messages import FleetStatus
from support.world import World

STARTING = FleetStatus(starting=2, message="no capacity")


class Starting(StandingFleet):
    """A fleet whose workers are starting."""

    def __init__(self) -> None:
        self.looks = 0
        self.asked: list[list[Work]] = []

    def grow(self, works: Sequence[Work]) -> None:
        self.asked.append(list(works))

    def status(self) -> FleetStatus:
        self.looks += 1
        return STARTING


def test_an_await_reports_the_fleet_only_while_its_package_waits_for_workers(world: World, ann: AccountRecord) -> None:
    fleet = Starting()
    watched = World(world.backend._replace(fleet=fleet), world.clock)
    package_id = watched.start(ann)
    assert watched.news(ann, package_id).fleet is None  # a worker that runs already may still take it
    watched.clock.move(LONELY_S + 1)
    assert watched.news(ann, package_id).fleet == STARTING
    watched.work(watched.retrieve())
    assert watched.news(ann, package_id).fleet is None
    assert fleet.looks == 1


def test_all_packages_of_an_await_share_one_look_at_the_fleet(world: World, ann: AccountRecord) -> None:
    fleet = Starting()
    watched = World(world.backend._replace(fleet=fleet), world.clock)
    packages = [watched.start(ann), watched.start(ann)]
    watched.clock.move(LONELY_S + 1)
    assert watched.news(ann, *packages).fleet == STARTING
    assert fleet.looks == 1


def test_a_master_without_a_fleet_reports_none(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    world.clock.move(LONELY_S + 1)
    assert world.news(ann, package_id).fleet is None


def test_a_start_enlarges_the_fleet_for_the_chunks_that_its_package_will_have(world: World, ann: AccountRecord) -> None:
    fleet = Starting()
    watched = World(world.backend._replace(fleet=fleet), world.clock)
    watched.start(ann, 1)
    watched.start(ann, 5, chunksize=1)
    assert fleet.asked == [[Work(1, None, 1)], [Work(5, None, 5)]]


def test_an_await_enlarges_the_fleet_again_while_packages_wait_for_workers(world: World, ann: AccountRecord) -> None:
    """The start may have failed to do so."""
    fleet = Starting()
    watched = World(world.backend._replace(fleet=fleet), world.clock)
    packages = [watched.start(ann, 3, chunksize=1), watched.start(ann, 4, chunksize=1)]
    fleet.asked.clear()
    watched.news(ann, *packages)
    assert fleet.asked == []
    watched.clock.move(LONELY_S + 1)
    watched.news(ann, *packages)
    assert [work.parts for work in fleet.asked[0]] == [3, 4]
    watched.work(watched.retrieve())
    watched.news(ann, *packages)
    assert len(fleet.asked) == 1
