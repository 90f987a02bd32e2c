import pytest
from msgspec.structs import replace

from cloudpar_master.adapters.records import HeadRow, Records
from cloudpar_master.core.head import Head
from cloudpar_master.ports import AccountRecord
from cloudpar_master.services.closed_packages import OpenCount
from cloudpar_master.services.steps import finish
from cloudpar_protocol.account_messages import RevokeAccount
from cloudpar_protocol.client_messages import ListPackages
from support.watched_world import WatchedWorld
from support.world import World

MANY = ListPackages(limit=3)


def names(world: World, account: AccountRecord | None, request: ListPackages = MANY) -> list[str]:
    return [each.package_id for each in finish(world.client.list_packages(account, request)).packages]


def end(world: World, account: AccountRecord) -> str:
    """Start a package that ends at once."""
    world.clock.move(1.0)
    package_id = world.start(account, tasks=1)
    world.cancel(account, package_id)
    return package_id


def test_packages_are_listed_newest_first(world: World, ann: AccountRecord) -> None:
    started = [end(world, ann), world.start(ann), end(world, ann)]
    assert names(world, ann) == names(world, None) == started[::-1]


def test_an_older_running_package_is_listed_before_newer_ended_ones(
    world: World, ann: AccountRecord, bob: AccountRecord
) -> None:
    running = world.start(ann)
    world.work([world.lease()])
    ended = [end(world, ann) for _ in range(4)]
    assert names(world, ann) == [ended[3], ended[2], running]
    assert finish(world.client.list_packages(ann, MANY)).executors == 2
    theirs = world.start(bob)
    assert names(world, None) == [theirs, ended[3], running]
    assert names(world, bob) == [theirs]


def test_of_more_running_packages_than_the_limit_the_newest_are_listed_without_reading_all(
    world: World, ann: AccountRecord
) -> None:
    started = []
    for _ in range(5):
        world.clock.move(1.0)
        started.append(world.start(ann))
    watched = WatchedWorld(world)
    assert names(watched, ann) == started[:1:-1]
    assert "packages.running_heads" not in watched.calls


def test_the_packages_of_an_account_that_have_ended_and_are_not_settled_are_not_read_one_by_one(
    world: World, ann: AccountRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An account may end packages much faster than they are settled. Such heads must not be read in one step."""
    running = world.start(ann)
    for _ in range(20):
        world.clock.move(0.01)
        package_id = world.start(ann, tasks=1)
        world.retrieve_all()
        world.cancel(ann, package_id)
        assert not world.head(package_id).life.settled
    read: list[str] = []
    head_of = Records.head

    def head(records: Records, row: HeadRow) -> Head:
        read.append(row.package_id)
        return head_of(records, row)

    monkeypatch.setattr(Records, "head", head)
    assert running in names(world, ann)
    assert len(read) == MANY.limit + 1
    read.clear()
    assert OpenCount(world.backend.packages).has_few(ann.account_id, 0, 2)
    assert read == [running]
    read.clear()
    finish(world.accounts.revoke_account(RevokeAccount(account_id=ann.account_id)))
    assert set(read) == {running}


@pytest.mark.parametrize("running", [True, False])
def test_a_whole_id_is_found_however_many_packages_are_newer(
    world: World, ann: AccountRecord, bob: AccountRecord, *, running: bool
) -> None:
    package_id = world.start(ann) if running else end(world, ann)
    for _ in range(4):
        end(world, ann)
    request = replace(MANY, package_id=package_id)
    assert names(world, ann, request) == names(world, None, request) == [package_id]
    assert names(world, bob, request) == []
    assert names(world, ann, replace(MANY, package_id="unknown")) == []
