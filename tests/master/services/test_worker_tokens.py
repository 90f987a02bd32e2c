"""Tokens of single workers: each expires, and can be revoked without the others."""

import pytest

from cloudpar_master.services.access import Caller
from cloudpar_master.services.backend import hash_token
from cloudpar_master.services.steps import finish
from cloudpar_protocol.account_messages import Account, CreateAccount, ListAccounts, RevokeAccount
from cloudpar_protocol.errors import Forbidden, InvalidToken
from support.clock import NOW
from support.world import World

HOUR_S = 3600.0


def create(world: World, name: str, valid_s: float = HOUR_S) -> Account:
    request = CreateAccount(
        idempotency_key=name, name=name, token_hash=hash_token(name), quota_us=0, role="worker", valid_s=valid_s
    )
    return world.accounts.create_account(request).account


def test_a_workers_own_token_allows_what_the_worker_token_allows_and_no_more(world: World) -> None:
    made = create(world, "lab-3")
    assert (made.role, made.valid_until) == ("worker", world.clock.now() + HOUR_S)
    assert world.dispatcher.caller("retrieve_tasks", "lab-3") == Caller("worker")
    assert world.accounts.hello("worker", None).role == "worker"
    for route in ("start_tasks", "create_account", "list_packages"):
        with pytest.raises(Forbidden):
            world.dispatcher.admit(route, "lab-3", b"", "application/json")


def test_an_expired_token_is_refused_and_the_error_names_the_fix(world: World) -> None:
    create(world, "lab-3")
    create(world, "lab-4", 2 * HOUR_S)
    world.clock.move(HOUR_S)
    with pytest.raises(
        InvalidToken, match=r"worker token 'lab-3' expired at .* UTC: .*cloudpar worker-token create.*start the worker"
    ):
        world.dispatcher.caller("retrieve_tasks", "lab-3")
    assert world.dispatcher.caller("retrieve_tasks", "lab-4") == Caller("worker")


def test_a_token_expires_by_the_machines_clock(world: World) -> None:
    """An operator reads there when it expires. The master's own time may differ from it by years."""
    world.clock.date_ahead_s = 1e9
    made = create(world, "lab-3")
    assert (made.created_at, made.valid_until) == (NOW + 1e9, NOW + 1e9 + HOUR_S)
    world.clock.date_ahead_s += HOUR_S - 1
    assert world.dispatcher.caller("retrieve_tasks", "lab-3") == Caller("worker")
    world.clock.date_ahead_s += 1
    with pytest.raises(InvalidToken, match="expired"):
        world.dispatcher.caller("retrieve_tasks", "lab-3")


def test_a_token_without_an_end_does_not_expire(world: World) -> None:
    create(world, "lab-3", 0.0)
    world.clock.move(1e9)
    assert world.dispatcher.caller("retrieve_tasks", "lab-3") == Caller("worker")


def test_one_token_can_be_revoked_without_the_others(world: World) -> None:
    made = create(world, "lab-3")
    create(world, "lab-4")
    finish(world.accounts.revoke_account(RevokeAccount(account_id=made.account_id)))
    with pytest.raises(InvalidToken, match="worker token 'lab-3' was revoked"):
        world.dispatcher.caller("retrieve_tasks", "lab-3")
    assert world.dispatcher.caller("retrieve_tasks", "lab-4") == Caller("worker")


def test_users_and_worker_tokens_are_listed_apart(world: World) -> None:
    user, worker = world.account("ann"), create(world, "lab-3")
    assert [each.account_id for each in world.accounts.list_accounts(ListAccounts()).accounts] == [user.account_id]
    assert world.accounts.list_accounts(ListAccounts(role="worker")).accounts == [worker]
