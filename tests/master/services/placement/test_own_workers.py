"""A worker with isolation "own" runs only tasks of the default account, since its tasks may read its user's files."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from cloudpar_master.ports import AccountRecord
from cloudpar_master.services.placement import NOT_SERVED
from cloudpar_protocol.errors import Forbidden
from cloudpar_protocol.payloads import Unfit
from master.services.agent import Agent
from support.world import POLICY, World, master, publication

from .test_placement import hungry, placement_of


@pytest.fixture
def world(world: World) -> World:
    """A master whose default account is ann's."""
    default_account = world.account("ann").account_id
    return World(world.backend._replace(default_account=default_account), world.clock)


def test_an_own_worker_is_handed_only_tasks_of_the_default_account(world: World, ann: AccountRecord) -> None:
    bob, own, other = world.account("bob"), Agent(world, "a", own=True), Agent(world, "b")
    bobs, anns = world.start(bob, 5), world.start(ann, 5)
    (lease,) = own.take(100)
    assert lease.package_id == anns
    world.publish(publication(lease), worker_id="a")
    assert own.take(100) == []
    (lease,) = other.take(100)
    assert lease.package_id == bobs


def test_a_package_waits_for_a_worker_that_serves_its_account(world: World) -> None:
    bob, own = world.account("bob"), Agent(world, "a", own=True)
    package_id = world.start(bob, 20)
    for _ in range(10):
        assert own.take(100) == []
        world.clock.move(POLICY.grace_s / 4)
    assert world.status(bob, package_id).state == "running"
    shown = placement_of(world, bob, package_id)
    assert (shown.workers, shown.fitting, shown.others) == (1, 0, [Unfit("host-a", NOT_SERVED)])


def test_a_worker_that_lacks_a_module_counts_only_beside_workers_of_its_account(world: World) -> None:
    """The own worker cannot take over, so the package runs on the worker that lacks the module, and its error shows."""
    bob, own, lacking = world.account("bob"), Agent(world, "a", own=True), Agent(world, "b")
    package_id = world.start(bob, 5)
    assert own.take() == []
    (lease,) = lacking.take()
    lacking.give_back(lease)
    assert own.take() == []
    (lease,) = lacking.take()
    assert (lease.package_id, lease.elsewhere) == (package_id, False)


def test_a_master_without_a_default_account_refuses_own_workers(world: World, ann: AccountRecord) -> None:
    nowhere = World(world.backend._replace(default_account=""), world.clock)
    nowhere.start(ann, 5)
    with pytest.raises(Forbidden, match=r"no default account.* use shared, or none"):
        Agent(nowhere, "a", own=True).take()


def test_idle_own_executors_widen_a_window_behind_many_packages_of_others(tmp_path: Path) -> None:
    with master(tmp_path) as any_world:
        ann = any_world.account("ann")
        world = World(any_world.backend._replace(default_account=ann.account_id), any_world.clock)
        start_many(world)
        package_id = world.start(ann, 1_000, chunksize=1)
        own = Agent(world, "a", executors=2, own=True)
        leases = [lease for _ in range(4) for lease in own.take(10)]
        assert {lease.package_id for lease in leases} == {package_id}
        assert len(leases) > POLICY.first_window


def test_a_closed_package_behind_many_packages_of_others_opens(tmp_path: Path) -> None:
    with master(tmp_path, replace(POLICY, open_packages=1)) as world:
        ann = world.account("ann")
        start_many(world)
        ending, closed = world.start(ann, 1_000), world.start(ann, 1_000)
        assert world.head(closed).pace.closed
        world.cancel(ann, ending)
        assert not world.head(closed).pace.closed


def start_many(world: World) -> None:
    """Start as many packages with uncut tasks, of an account that no worker serves, as one request looks at first."""
    bob = world.account("bob")
    for _ in range(100):
        world.start(bob, 100, chunksize=1)
    world.clock.move(1)


def test_a_worker_gives_tasks_back_although_chunks_wait_that_no_worker_may_run(
    world: World, ann: AccountRecord
) -> None:
    bob, busy, idle = world.account("bob"), Agent(world, "a", own=True), Agent(world, "b", own=True)
    world.start(bob, 5)
    world.start(ann, 5)
    (lease,) = (lease for _ in range(10) for lease in busy.take())
    assert idle.take() == []
    assert hungry(world, lease)
    world.start(ann, 5)
    assert not hungry(world, lease)
