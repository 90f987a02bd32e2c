"""Packages of a later release, during an update or after a return to this release: all other packages go on."""

import msgspec
import pytest
from msgspec.structs import replace

from cloudpar_master.core.head import SCHEMA
from cloudpar_master.ports import AccountRecord
from cloudpar_master.services import timer
from cloudpar_master.services.uncut_packages import SKIPPED_S
from cloudpar_protocol.worker_messages import Lease
from support.clock import NOW
from support.packages import inbox, make_head, make_spec
from support.watched_world import WatchedWorld
from support.world import POLICY, World, publication

LATER = {"priority": msgspec.Raw(msgspec.msgpack.encode(3))}
"""A field that no release has yet."""


def create_later(world: World, count: int) -> list[str]:
    """Create packages of a later release with uncut tasks, older than all others."""
    names = [f"later{number:03}" for number in range(count)]
    for number, name in enumerate(names):
        spec = make_spec(name, started_at=NOW - 100 + number * 1e-3, tasks=1_000)
        world.backend.packages.create(spec, replace(make_head(spec), schema=SCHEMA + 1))
    return names


def saved_by_a_later_release(world: World, package_id: str, **changes: int) -> None:
    """Save a package's next head with a field of a later release."""
    head = world.head(package_id)
    newer = replace(head, version=head.version + 1, later=LATER, **changes)
    assert world.backend.packages.save(newer, world.clock.now())


def test_fields_of_a_later_release_survive_publications(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    saved_by_a_later_release(world, package_id)
    world.work_all()
    head = world.head(package_id)
    assert head.life.state == "completed"
    assert head.later == LATER


def test_the_timer_reaches_packages_behind_many_of_a_later_release(
    world: World, ann: AccountRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timer, "PACKAGES", 5)
    later = create_later(world, 10)
    package_id = world.start(ann)
    world.clock.move(POLICY.lifetime_s)
    for _ in range(3):
        world.timer.tick()
    assert world.head(package_id).life.state == "failed"
    assert all(world.head(each).version == 0 for each in later), "their heads stay as they are"


def test_a_package_of_a_later_release_is_due_again_for_a_master_of_that_release(world: World) -> None:
    create_later(world, 1)
    world.timer.tick()
    now = world.clock.now()
    assert world.backend.packages.due(now, 10) == []
    assert world.backend.packages.due(now + timer.DEFER_S + 1, 10) == ["later000"]


def test_idle_workers_reach_packages_behind_many_of_a_later_release(world: World, ann: AccountRecord) -> None:
    later = create_later(world, 30)
    world.start(ann, tasks=1_000)
    leases: list[Lease] = []
    for _ in range(6):
        leases += world.retrieve()
    assert len(leases) > 8, "an idle worker gets more than the first window"
    assert not any(inbox(world.backend.packages, each) for each in later), "no event waits for a master of that release"


def test_idle_workers_do_not_read_the_heads_of_a_later_release_each_time(world: World) -> None:
    create_later(world, 30)
    watched = WatchedWorld(world)
    watched.retrieve()
    watched.calls.clear()
    watched.retrieve()
    assert "packages.heads" not in watched.calls
    world.clock.move(SKIPPED_S + 1)
    watched.retrieve()
    assert "packages.heads" in watched.calls, "a later release may be gone, and have left them to this one"


def test_a_master_of_an_earlier_release_hands_out_chunks_and_stores_results_for_a_later_one(
    world: World, ann: AccountRecord
) -> None:
    package_id = world.start(ann)
    saved_by_a_later_release(world, package_id, schema=SCHEMA + 1)
    lease = world.lease()
    world.publish(publication(lease))
    assert world.head(package_id).tasks.done == 0
    saved_by_a_later_release(world, package_id, schema=SCHEMA)
    world.clock.move(3)
    assert world.status(ann, package_id).progress.done == 5
