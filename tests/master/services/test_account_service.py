import pytest

from cloudpar_master.core.head.package import PACKAGE_BYTES
from cloudpar_master.ports import AccountRecord
from cloudpar_master.services.account_service import AccountService
from cloudpar_master.services.backend import hash_token
from cloudpar_master.services.steps import finish
from cloudpar_protocol.account_messages import Account, CreateAccount, GrantQuota, ListAccounts, RevokeAccount
from cloudpar_protocol.errors import Gone, IdempotencyConflict, NotFound
from support.world import HOUR_US, World, publication


def create(world: World, *, key: str = "key", name: str = "cy", text: str = "t", quota_us: int = HOUR_US) -> Account:
    request = CreateAccount(idempotency_key=key, name=name, token_hash=hash_token(text), quota_us=quota_us)
    return world.accounts.create_account(request).account


def grant(world: World, account_id: str, quota_us: int, key: str = "grant") -> Account:
    request = GrantQuota(idempotency_key=key, account_id=account_id, quota_us=quota_us)
    return world.accounts.grant_quota(request).account


def test_an_account_is_created_once_for_each_key(world: World) -> None:
    first = create(world)
    assert (first.name, first.state, first.granted_us, first.spent_us) == ("cy", "active", HOUR_US, 0)
    assert create(world) == first
    assert create(world, key="other", name="other", text="other").account_id != first.account_id
    assert len(world.accounts.list_accounts(ListAccounts()).accounts) == 2


def test_a_key_makes_one_account_only(world: World) -> None:
    create(world)
    for name, text in [("di", "t"), ("cy", "another")]:
        with pytest.raises(IdempotencyConflict, match="make a new key"):
            create(world, name=name, text=text)


def test_a_token_belongs_to_one_account_only(world: World) -> None:
    create(world)
    with pytest.raises(IdempotencyConflict, match="this token belongs to another account: make a fresh one"):
        create(world, key="other")


def test_a_revoked_account_runs_nothing_more(world: World, ann: AccountRecord, bob: AccountRecord) -> None:
    mine, other = world.start(ann), world.start(bob)
    lease = world.lease()
    reply = finish(world.accounts.revoke_account(RevokeAccount(account_id=ann.account_id)))
    assert reply.account.state == "revoked"
    assert world.extend(lease)[0].state == "ended"
    head = world.head(mine)
    assert (head.life.state, head.life.reason, head.life.message) == (
        "cancelled", "revoked", "the operator revoked the account's token",
    )  # fmt: skip
    assert {each.package_id for each in world.retrieve()} == {other}
    world.publish(publication(lease, [0], outcome="cancelled", duration_us=9, closes=True))
    world.settle()
    assert world.record(ann.account_id).spent_us == 9


def test_a_repeated_revocation_has_the_same_answer(world: World, ann: AccountRecord) -> None:
    request = RevokeAccount(account_id=ann.account_id)
    assert finish(world.accounts.revoke_account(request)) == finish(world.accounts.revoke_account(request))


def test_a_revoked_account_is_granted_nothing(world: World, ann: AccountRecord) -> None:
    finish(world.accounts.revoke_account(RevokeAccount(account_id=ann.account_id)))
    for quota_us in (5, -5):
        with pytest.raises(Gone, match=r"account 'ann' was revoked, .*: make another by 'cloudpar account create'"):
            grant(world, ann.account_id, quota_us)
    assert world.record(ann.account_id).granted_us == ann.granted_us


def test_unknown_accounts_are_not_found(world: World) -> None:
    text = "no account 'unknown': 'cloudpar account list' shows them"
    with pytest.raises(NotFound, match=text):
        grant(world, "unknown", 5)
    with pytest.raises(NotFound, match=text):
        finish(world.accounts.revoke_account(RevokeAccount(account_id="unknown")))


def test_accounts_are_listed_oldest_first_with_what_they_used(world: World, ann: AccountRecord) -> None:
    world.clock.move(1)
    world.account("bob")
    world.start(ann)
    world.work_all(duration_us=7)
    first, second = world.accounts.list_accounts(ListAccounts()).accounts
    assert (first.name, first.spent_us, first.reserved_us) == ("ann", 70, 0)
    assert second.name == "bob"
    assert (first.stored_bytes, first.stored_limit) == (None, None)


def test_accounts_are_listed_with_what_they_store_if_the_request_wants_it(world: World, ann: AccountRecord) -> None:
    world.start(ann)
    owner = AccountService(world.backend._replace(default_account=world.account("owner").account_id))
    first, second = owner.list_accounts(ListAccounts(storage=True)).accounts
    assert (first.stored_bytes, first.stored_limit) == (PACKAGE_BYTES + len(b"code"), world.backend.policy.stored_bytes)
    assert (second.stored_bytes, second.stored_limit) == (0, None)
