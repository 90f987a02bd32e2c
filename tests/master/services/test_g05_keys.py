"""Requests with the same key: later, at the same moment, or after the package was forgotten."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aws.differences import SOUND
from aws.stores import on_moto
from cloudpar_master.ports import AccountRecord
from cloudpar_protocol.account_messages import CreateAccount, GrantQuota
from cloudpar_protocol.errors import IdempotencyConflict
from master.races import patiently, race
from support.clock import SetClock
from support.scale import Scale
from support.stores import FACTORIES, Factory, Stores
from support.watched_world import WatchedWorld
from support.world import HOUR_US, POLICY, World, all_results, master, start_tasks, world_on

CALLERS = 50
FORGOTTEN_S = POLICY.tombstone_s + 1

on_adapters_whose_day_passes = pytest.mark.parametrize(
    "factory", [*FACTORIES, on_moto], ids=lambda factory: str(factory.__name__)
)
on_sound_adapters = pytest.mark.parametrize("factory", SOUND, ids=lambda factory: str(factory.__name__))


@on_sound_adapters
def test_g05_many_starts_with_one_key_at_once_make_one_package(
    factory: Factory, tmp_path: Path, scale: Scale, reached: Callable[[str], None]
) -> None:
    clock, turns = SetClock(), scale(2, 20)
    with master(tmp_path, POLICY, clock, factory) as world:
        ann = world.account(quota_us=100 * HOUR_US)
        for turn in range(turns):

            def start(stores: Stores, caller: int, key: str = f"key {turn}") -> str:
                client, request = world_on(stores, clock).client, start_tasks(key, session=f"{caller}")
                return patiently(lambda: client.start_tasks(ann, request).package_id)

            assert len(set(race(factory, tmp_path, clock, CALLERS, start))) == 1
            assert len(list(world.backend.packages.of_account(ann.account_id, 1_000))) == turn + 1
            with pytest.raises(IdempotencyConflict, match="make a new key"):
                world.client.start_tasks(ann, start_tasks(f"key {turn}", tasks=11))
        clock.move(3.0)
        while world.timer.tick():
            clock.move(3.0)
        world.work_all()
        assert world.record(ann.account_id).spent_us == turns * 10_000
        assert all(
            head.life.state == "completed" for head in list(world.backend.packages.of_account(ann.account_id, 1_000))
        )
    reached(
        f"{factory.__name__}: {turns} times {CALLERS} at once with one key: 1 package each; another body: a conflict"
    )


@on_sound_adapters
def test_g05_of_two_bodies_with_one_key_at_once_one_is_a_conflict(factory: Factory, tmp_path: Path) -> None:
    clock = SetClock()
    with master(tmp_path, POLICY, clock, factory) as world:
        ann = world.account()

        def start(stores: Stores, caller: int) -> int | None:
            client, request = world_on(stores, clock).client, start_tasks("key", tasks=10 + caller % 2)
            try:
                patiently(lambda: client.start_tasks(ann, request))
            except IdempotencyConflict:
                return None
            return caller % 2

        started = race(factory, tmp_path, clock, CALLERS, start)
        assert len(set(started) - {None}) == 1
        assert started.count(None) == CALLERS // 2
        assert len(list(world.backend.packages.of_account(ann.account_id, 10))) == 1


@on_sound_adapters
def test_g05_repeated_creations_and_grants_count_once(factory: Factory, tmp_path: Path) -> None:
    clock = SetClock()

    def create_and_grant(stores: Stores, _: int) -> str:
        world = world_on(stores, clock)
        request = CreateAccount(idempotency_key="ann", name="ann", token_hash="0" * 64, quota_us=HOUR_US)
        account_id = patiently(lambda: world.accounts.create_account(request).account.account_id)
        grant = GrantQuota(idempotency_key="more", account_id=account_id, quota_us=HOUR_US)
        return patiently(lambda: world.accounts.grant_quota(grant).account.account_id)

    with master(tmp_path, POLICY, clock, factory) as world:
        (account_id,) = set(race(factory, tmp_path, clock, CALLERS, create_and_grant))
        assert [account.account_id for account in world.backend.accounts.list()] == [account_id]
        assert world.record(account_id).granted_us == 2 * HOUR_US
        with pytest.raises(IdempotencyConflict, match="make a new key"):
            world.accounts.create_account(
                CreateAccount(idempotency_key="ann", name="bob", token_hash="0" * 64, quota_us=HOUR_US)
            )


@on_adapters_whose_day_passes
@pytest.mark.parametrize("tasks", [10, 7])
def test_g05_a_key_whose_package_is_forgotten_starts_another_package(
    factory: Factory, tasks: int, tmp_path: Path
) -> None:
    with master(tmp_path, factory=factory) as world:
        ann, former = forget(world)
        package_id = world.client.start_tasks(ann, start_tasks("key", tasks=tasks)).package_id
        assert package_id == former
        world.work_all()
        status = world.status(ann, package_id)
        assert (status.state, status.settled, all_results(status)) == ("completed", True, list(range(tasks)))
        account = world.record(ann.account_id)
        assert (account.spent_us, account.reserved_us) == (10_000 + tasks * 1_000, 0)


@on_adapters_whose_day_passes
def test_g05_a_slow_timer_leaves_alone_the_package_that_a_forgotten_key_has_started(
    factory: Factory, tmp_path: Path
) -> None:
    """Both timers see the tombstone. Before the slow one removes it, the other has done so, and the key is used again.

    If the new package were removed, its slice would stay reserved, and its client would get no results.
    """
    with master(tmp_path, factory=factory) as world:
        ann = world.account("ann")
        package_id = world.client.start_tasks(ann, start_tasks("key")).package_id
        world.work_all()
        world.acknowledge(ann, package_id)
        world.clock.move(FORGOTTEN_S)
        slow, forget_now = WatchedWorld(world), world.backend.packages.forget

        def forget_late(*removed: Any) -> Any:
            world.timer.tick()
            world.client.start_tasks(ann, start_tasks("key"))
            return forget_now(*removed)

        slow.ports["packages"].instead["forget"] = forget_late
        slow.timer.tick()
        world.work_all()
        status = world.status(ann, package_id)
        assert (status.state, all_results(status)) == ("completed", list(range(10)))
        account = world.record(ann.account_id)
        assert (account.spent_us, account.reserved_us) == (20_000, 0)


@on_adapters_whose_day_passes
def test_g05_a_process_that_remembers_the_former_package_hands_out_the_new_one(
    factory: Factory, tmp_path: Path
) -> None:
    """By its cached spec of the former package it would hand out the former code."""
    clock = SetClock()
    with master(tmp_path, POLICY, clock, factory) as world, master(tmp_path, POLICY, clock, factory) as other:
        ann, _ = forget(world, worked_by=other)
        world.client.start_tasks(ann, start_tasks("key", call="args"))
        assert {lease.call for lease in other.retrieve()} == {"args"}


def forget(world: World, worked_by: World | None = None) -> tuple[AccountRecord, str]:
    """Run a package with the key "key" until its tombstone is gone. Returns its account and its id."""
    ann = world.account("ann")
    package_id = world.client.start_tasks(ann, start_tasks("key")).package_id
    (worked_by or world).work_all()
    world.acknowledge(ann, package_id)
    world.clock.move(FORGOTTEN_S)
    world.timer.tick()
    assert world.backend.packages.load(package_id) is None
    return ann, package_id
