"""Nobody sees, cancels or reads another account's packages; and every role has its routes."""

import pytest

from cloudpar_master.ports import AccountRecord
from cloudpar_protocol import codec, routes
from cloudpar_protocol.account_messages import ListAccounts
from cloudpar_protocol.client_messages import (
    CancelTasks,
    CancelTasksReply,
    Hello,
    HelloReply,
    ListPackages,
    ListPackagesReply,
)
from cloudpar_protocol.errors import BadRequest, Forbidden, InvalidToken, NotFound
from cloudpar_protocol.payloads import BlobData, BlobRef, TaskCode
from cloudpar_protocol.routes import Route
from master.services.world import World


def ask(world: World, name: str, token: str | None, request: object) -> object:
    call = world.dispatcher.admit(name, token, codec.encode(request), codec.MSGPACK)
    return world.dispatcher.perform(call)


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
    assert [each.package_id for each in world.client.list_packages(bob, ListPackages()).packages] == [mine]


def test_g19_another_accounts_payloads_cannot_be_named(world: World, ann: AccountRecord, bob: AccountRecord) -> None:
    for kind in ("data", "code"):
        for key in (f"{kind}/{ann.account_id}/x", f"{kind}/{bob.account_id}/../{ann.account_id}/x", "x"):
            blob = BlobRef(key, size=1_000)
            changes = {"data": BlobData(blob)} if kind == "data" else {"code": TaskCode("0" * 64, blob=blob)}
            with pytest.raises(Forbidden, match="use the key that prepare_uploads answered"):
                world.start(bob, **changes)
    assert world.backend.queue.waiting() == 0


def test_g19_one_accounts_key_is_not_anothers(world: World, ann: AccountRecord, bob: AccountRecord) -> None:
    """The package id is derived from both, so that nobody can guess another's by its key."""
    assert world.start(ann, idempotency_key="k") != world.start(bob, idempotency_key="k")


def test_g19_an_admin_sees_and_cancels_everybodys_packages(
    world: World, ann: AccountRecord, bob: AccountRecord
) -> None:
    package_ids = {world.start(ann), world.start(bob)}
    listed = ask(world, "list_packages", "admin", ListPackages())
    assert isinstance(listed, ListPackagesReply)
    assert {each.package_id for each in listed.packages} == package_ids
    for package_id in package_ids:
        reply = ask(world, "cancel_tasks", "admin", CancelTasks(package_id=package_id))
        assert isinstance(reply, CancelTasksReply)
        assert reply.state == "cancelled"


@pytest.mark.parametrize("route", routes.ROUTES, ids=[route.name for route in routes.ROUTES])
def test_g19_every_route_refuses_the_tokens_of_other_roles(
    world: World,
    ann: AccountRecord,
    route: Route[object, object],  # type: ignore[type-var]
) -> None:
    tokens = {"user": "ann", "worker": "worker", "admin": "admin"}
    for role, token in tokens.items():
        allowed = route.role in {role, "any"} or (role == "admin" and route.name in {"list_packages", "cancel_tasks"})
        wanted = BadRequest if allowed else Forbidden  # the body comes second
        with pytest.raises(wanted) as caught:
            world.dispatcher.admit(route.name, token, b"\xc1", codec.MSGPACK)
        if not allowed:
            expected = f"{route.name} takes a token for the role '{route.role}', and this one is for '{role}'"
            assert str(caught.value) == expected
    for nobodys in ("", "nobody's", None):
        with pytest.raises(InvalidToken):
            world.dispatcher.admit(route.name, nobodys, b"\xc1", codec.MSGPACK)


@pytest.mark.parametrize("role", ["user", "worker", "admin"])
def test_g19_everybody_may_ask_who_they_are(world: World, ann: AccountRecord, role: str) -> None:
    reply = ask(world, "hello", "ann" if role == "user" else role, Hello())
    assert isinstance(reply, HelloReply)
    assert reply.role == role
    assert (reply.name, reply.granted_us) == (("ann", ann.granted_us) if role == "user" else (None, 0))


def test_g19_an_unknown_route_is_not_found(world: World) -> None:
    with pytest.raises(NotFound, match="no route /v1/fly: there are acknowledge, await_tasks, cancel_tasks"):
        world.dispatcher.admit("fly", "admin", b"", codec.MSGPACK)


def test_g19_the_reasons_of_a_refused_token_name_the_mend(world: World, ann: AccountRecord) -> None:
    world.backend.accounts.revoke(ann.account_id)
    for token, text in [
        (None, "CLOUDPAR_TOKEN or Pool"),
        ("stranger", "CLOUDPAR_TOKEN of a user.* or ask the operator for one"),
        ("ann", "the token of account 'ann' was revoked: ask the operator for a new one"),
    ]:
        with pytest.raises(InvalidToken, match=text):
            ask(world, "hello", token, Hello())
    with pytest.raises(Forbidden):
        ask(world, "list_accounts", "worker", ListAccounts())
