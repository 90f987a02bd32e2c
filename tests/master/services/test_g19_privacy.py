"""An account cannot see, cancel or read another account's packages; and every role has its routes."""

import pytest

from cloudpar_master.ports import AccountRecord
from cloudpar_master.services.steps import finish
from cloudpar_protocol import codec, routes
from cloudpar_protocol.client_messages import CancelTasks, Hello, ListPackages
from cloudpar_protocol.errors import Forbidden, NotFound
from cloudpar_protocol.payloads import BlobData, BlobRef, TaskCode
from support.backends import call
from support.world import World


def test_g19_another_accounts_package_cannot_be_awaited(world: World, ann: AccountRecord, bob: AccountRecord) -> None:
    package_id = world.start(ann)
    world.work_all()
    reply = world.news(bob, package_id)
    assert reply.packages == []
    assert reply.missing.keys() == {package_id}
    assert reply.missing[package_id] == world.news(bob, "nonsense").missing["nonsense"]


def test_g19_another_accounts_package_cannot_be_cancelled(world: World, ann: AccountRecord, bob: AccountRecord) -> None:
    package_id = world.start(ann)
    for changes in ({}, {"ranges": [(0, 1)]}, {"only_queued": True}):
        with pytest.raises(NotFound):
            world.cancel(bob, package_id, **changes)
    head = world.head(package_id)
    assert (head.life.state, head.tasks.cancelled, head.tasks.draining) == ("running", [], False)


def test_g19_another_accounts_package_cannot_be_acknowledged(
    world: World, ann: AccountRecord, bob: AccountRecord
) -> None:
    package_id = world.start(ann)
    world.acknowledge(bob, package_id)
    assert (world.head(package_id).life.state, world.head(package_id).life.acknowledged_at) == ("running", None)


def test_g19_another_accounts_packages_are_not_listed(world: World, ann: AccountRecord, bob: AccountRecord) -> None:
    world.start(ann)
    mine = world.start(bob)
    assert [each.package_id for each in finish(world.client.list_packages(bob, ListPackages())).packages] == [mine]


def test_g19_another_accounts_payloads_cannot_be_named(world: World, ann: AccountRecord, bob: AccountRecord) -> None:
    for kind in ("data", "code"):
        for key in (f"{kind}/{ann.account_id}/x", f"{kind}/{bob.account_id}/../{ann.account_id}/x", "x"):
            blob = BlobRef(key, size=1_000)
            changes = {"data": BlobData(blob)} if kind == "data" else {"code": TaskCode("0" * 64, blob=blob)}
            with pytest.raises(Forbidden, match="use the key that prepare_uploads answered"):
                world.start(bob, **changes)
    assert world.backend.queue.waiting() == 0


def test_g19_two_accounts_with_one_key_have_packages_of_their_own(
    world: World, ann: AccountRecord, bob: AccountRecord
) -> None:
    """The package id is derived from account and key, so that no account can guess another's id by its key."""
    assert world.start(ann, idempotency_key="k") != world.start(bob, idempotency_key="k")


def test_g19_an_admin_sees_and_cancels_the_packages_of_all_accounts(
    world: World, ann: AccountRecord, bob: AccountRecord
) -> None:
    package_ids = {world.start(ann), world.start(bob)}
    listed = call(world.dispatcher, "admin", routes.LIST_PACKAGES, ListPackages())
    assert {each.package_id for each in listed.packages} == package_ids
    for package_id in package_ids:
        reply = call(world.dispatcher, "admin", routes.CANCEL_TASKS, CancelTasks(package_id=package_id))
        assert reply.state == "cancelled"


@pytest.mark.parametrize("role", ["user", "worker", "admin"])
def test_g19_a_caller_of_any_role_learns_its_role(world: World, ann: AccountRecord, role: str) -> None:
    reply = call(world.dispatcher, "ann" if role == "user" else role, routes.HELLO, Hello())
    assert reply.role == role
    assert (reply.name, reply.granted_us) == (("ann", ann.granted_us) if role == "user" else (None, 0))


def test_g19_an_unknown_route_is_not_found(world: World) -> None:
    with pytest.raises(NotFound, match="no route /v1/fly: there are acknowledge, await_tasks, cancel_tasks"):
        world.dispatcher.admit("fly", "admin", b"", codec.MSGPACK)
