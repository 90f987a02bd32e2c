"""What idle workers and the timer look through: no account's packages hide those of another account."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from cloudpar_master.core.head import Head
from cloudpar_master.core.quota import FIRST_SLICE_US
from cloudpar_master.ports import AccountRecord, Fit
from cloudpar_master.services.timer import PACKAGES
from cloudpar_master.services.uncut_packages import REFUSED_S, SPENT_S, TOGETHER, UncutPackages
from cloudpar_protocol.account_messages import GrantQuota
from cloudpar_protocol.worker_messages import RetrieveTasks
from support.heads import altered
from support.memory.stores import in_memory
from support.watched_world import WatchedWorld
from support.world import HOUR_US, POLICY, World, master

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


def test_an_idle_worker_does_not_read_all_closed_packages_of_accounts_without_quota(world: World) -> None:
    closed: list[str] = []
    for number in range(3):
        poor = world.account(f"poor {number}", quota_us=FIRST_SLICE_US)
        closed += [world.start(poor, 100) for _ in range(POLICY.open_packages + WAITING)][-WAITING:]
    watched, reads = WatchedWorld(world), [0]
    heads = world.backend.packages.heads

    def counted(package_ids: Sequence[str]) -> list[Head]:
        reads[0] += len(package_ids)
        return heads(package_ids)

    watched.ports["packages"].instead["heads"] = counted
    while retrieve(watched):
        pass
    opened = sum(not world.head(each).pace.closed for each in closed)
    for seconds in (0.5, 0.5, SPENT_S, 0.5, 0.5, SPENT_S):
        world.clock.move(seconds)
        reads[0] = 0
        watched.calls.clear()
        assert retrieve(watched) == set()
        assert reads[0] <= 2 * TOGETHER
        assert len(watched.calls) <= 40
    assert sum(not world.head(each).pace.closed for each in closed) <= opened + 2 * 3


def test_a_closed_package_gets_a_chunk_soon_after_its_account_gets_quota(world: World) -> None:
    poor = world.account("poor", quota_us=FIRST_SLICE_US)
    for _ in range(POLICY.open_packages + 9):
        world.start(poor, 100)
    while retrieve(world):
        pass
    world.accounts.grant_quota(GrantQuota(idempotency_key="k", account_id=poor.account_id, quota_us=HOUR_US))
    world.clock.move(REFUSED_S)
    assert retrieve(world)


def test_a_package_that_has_got_a_reserve_is_found_although_its_account_refuses_others(world: World) -> None:
    poor = world.account("poor", quota_us=FIRST_SLICE_US)
    uncut = UncutPackages(world.backend.packages, world.clock)
    closed = [world.start(poor, 100) for _ in range(POLICY.open_packages + 60)][-60:]
    list(uncut.heads(Fit()))
    uncut.refused(poor.account_id)
    assert not {head.package_id for head in uncut.heads(Fit())} & set(closed)
    head = world.head(closed[-1])
    after = altered(head, version=head.version + 1, reserved_us=1)
    assert world.backend.packages.save(after, world.clock.now())
    world.clock.move(SPENT_S)
    uncut.refused(poor.account_id)
    found = [{each.package_id for each in uncut.heads(Fit())} for _ in range(len(closed) // TOGETHER + 1)]
    assert closed[-1] in found[-1]


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
