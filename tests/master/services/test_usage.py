"""The operator's list of charges by day."""

import pytest

from cloudpar_master.ports import AccountRecord
from cloudpar_master.ports.account_store import day_of
from cloudpar_master.services.access import Caller
from cloudpar_protocol import codec
from cloudpar_protocol.account_messages import ListUsage, ListUsageReply, Usage
from cloudpar_protocol.errors import Forbidden
from support.clock import NOW
from support.world import World


def usage(world: World) -> list[Usage]:
    request = codec.encode(ListUsage(since=day_of(NOW)))
    reply = world.dispatcher.perform(world.dispatcher.enter("list_usage", Caller("admin"), request, codec.MSGPACK))
    assert isinstance(reply, ListUsageReply)
    assert reply.cursor is None
    return reply.usage


def test_a_package_counts_with_its_charge_when_it_has_ended(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    assert usage(world) == []
    world.work_all(duration_us=1_000)
    assert world.status(ann, package_id).state == "completed"
    assert usage(world) == [Usage(account_id=ann.account_id, day=day_of(NOW), charged_us=10_000, packages=1)]


def test_a_package_that_is_cancelled_counts_with_what_it_had_used(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    world.work([world.lease()], duration_us=1_000)
    world.cancel(ann, package_id)
    world.settle()
    assert [(each.charged_us, each.packages) for each in usage(world)] == [(5_000, 1)]


def test_days_are_in_order(world: World, ann: AccountRecord, bob: AccountRecord) -> None:
    for _ in range(2):
        for account in sorted((bob, ann), reverse=True):
            world.start(account)
        world.work_all()
        world.clock.move(86_400)
    shown = [(each.day, each.account_id) for each in usage(world)]
    assert len(shown) == 4
    assert shown == sorted(shown)


def test_a_user_may_not_list_charges(world: World, ann: AccountRecord) -> None:
    request = codec.encode(ListUsage(since=day_of(NOW)))
    with pytest.raises(Forbidden, match="list_usage"):
        world.dispatcher.enter("list_usage", Caller("user", ann), request, codec.MSGPACK)
