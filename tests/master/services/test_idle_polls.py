"""What idle workers and the timer look through: no account's packages hide those of another account."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from cloudpar_master.core.quota import FIRST_SLICE_US
from cloudpar_master.ports import AccountRecord
from cloudpar_master.services.timer import PACKAGES
from cloudpar_protocol.worker_messages import RetrieveTasks
from master.memory.stores import in_memory
from master.services.world import POLICY, WatchedWorld, World, master

WAITING = 100
"""As many packages as one request folds at most."""

ROUNDS = 5


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Run a master whose leases last longer than each of these tests."""
    with master(tmp_path, replace(POLICY, lease_s=1e6, first_window=1), factory=in_memory) as world:
        yield world


def start_waiting(world: World) -> None:
    """Start packages of an account whose quota is reserved by the first of them."""
    poor = world.account("poor", quota_us=FIRST_SLICE_US)
    for _ in range(WAITING + 1):
        world.start(poor, 1)
        world.clock.move(0.001)
    assert len(world.retrieve()) == 1


def retrieve(world: World, **changes: object) -> set[str]:
    request = RetrieveTasks(attempt_id=f"a{next(world.numbers)}", worker_id="w", executors=2, chunks=2)
    return {lease.package_id for lease in world.worker.retrieve_tasks(replace(request, **changes)).leases}


def test_an_account_that_waits_for_its_quota_does_not_keep_idle_workers_from_another_accounts_package(
    world: World, ann: AccountRecord
) -> None:
    """So much time is between the retrievals that each of the waiting packages may request compute time again."""
    start_waiting(world)
    package_id = world.start(ann, 1_000)
    assert retrieve(world) == {package_id}
    for _ in range(ROUNDS):
        world.clock.move(3600)
        assert retrieve(world) == {package_id}


def test_idle_workers_cost_few_calls_while_an_account_waits_for_its_quota(world: World) -> None:
    start_waiting(world)
    watched = WatchedWorld(world)
    for _ in range(ROUNDS):
        world.clock.move(3600)
        assert retrieve(watched) == set()
    assert len(watched.calls) <= 5 * ROUNDS


def test_the_closed_packages_of_an_account_without_quota_cost_an_idle_worker_one_fold(
    world: World, ann: AccountRecord
) -> None:
    """One request for compute time shows that the account grants nothing to any of them."""
    poor = world.account("poor", quota_us=FIRST_SLICE_US)
    closed = [world.start(poor, 100) for _ in range(POLICY.open_packages + 9)][-9:]
    package_id = world.start(ann, 1_000)
    assert all(world.head(each).pace.closed for each in closed)
    while package_id not in (taken := retrieve(world)):
        assert taken
    assert sum(not world.head(each).pace.closed for each in closed) <= 1
    assert retrieve(world) == {package_id}
    assert sum(not world.head(each).pace.closed for each in closed) <= 2


def test_idle_executors_serve_accounts_in_turn(world: World, ann: AccountRecord, bob: AccountRecord) -> None:
    older = {world.start(ann, 1_000) for _ in range(3)}
    world.clock.move(1)
    younger = {world.start(bob, 1_000)}
    assert {lease.package_id for lease in world.retrieve()} == older | younger
    served = [retrieve(world, executors=1, chunks=1) for _ in range(6)]
    assert sum(each <= younger for each in served) == 3
    assert sum(each <= older for each in served) == 3


def test_a_package_behind_more_than_a_thousand_packages_that_a_worker_cannot_run_is_cut(
    world: World, ann: AccountRecord
) -> None:
    for number in range(11):
        another = world.account(f"another {number}")
        for _ in range(100):
            world.start(another, 100, python="3.12")
    world.clock.move(1)
    package_id = world.start(ann, 100)
    assert retrieve(world, pythons=["3.11"]) == {package_id}, "the first window is in the queue"
    assert {package_id} in [retrieve(world, pythons=["3.11"]) for _ in range(2)]


def test_a_package_that_is_due_is_folded_although_another_account_has_many_that_were_due_before(
    world: World, ann: AccountRecord, bob: AccountRecord
) -> None:
    """A fold makes a package due at a later time, so the packages of one account cannot stay before those of others."""
    for _ in range(2 * PACKAGES):
        world.start(ann, 1)
    world.clock.move(1)
    package_id = world.start(bob, 1)
    world.clock.move(POLICY.lifetime_s)
    for _ in range(3):
        world.timer.tick()
    assert world.head(package_id).life.ended
