"""An await reports how the fleet starts only while a package waits for its first worker."""

from cloudpar_master.ports import AccountRecord
from cloudpar_master.ports.fleet import StandingFleet
from cloudpar_master.services.client_service import LONELY_S
from cloudpar_protocol.client_messages import FleetStatus
from master.services.world import World

STARTING = FleetStatus(starting=2, message="no capacity")


class Starting(StandingFleet):
    """A fleet whose workers are starting."""

    def __init__(self) -> None:
        self.looks = 0

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
