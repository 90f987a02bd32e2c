"""A worker with isolation "own" runs only tasks of the default account, since its tasks may read its user's files."""

import pytest

from cloudpar_master.ports import AccountRecord
from cloudpar_master.services.placement import NOT_SERVED
from cloudpar_protocol.errors import Forbidden
from cloudpar_protocol.payloads import Unfit
from master.services.agent import Agent
from master.services.world import POLICY, World, publication

from .test_placement import placement_of


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
