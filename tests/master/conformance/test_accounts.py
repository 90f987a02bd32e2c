"""AccountStore: accounts, tokens, grants."""

from pathlib import Path

import pytest

from cloudpar_master.ports import AccountRecord
from cloudpar_master.ports.account_store import MOST_US
from cloudpar_protocol.errors import IdempotencyConflict
from cloudpar_protocol.payloads import Network
from master.races import patiently, race
from support.clock import NOW, SetClock
from support.stores import Factory, Stores


def make_account(name: str = "a", *, granted_us: int = 1000, created_at: float = NOW) -> AccountRecord:
    return AccountRecord(name, f"name of {name}", f"hash of {name}", "active", granted_us, 0, 0, created_at)


def test_an_unknown_account_is_none(stores: Stores) -> None:
    assert stores.accounts.get("a") is None
    assert stores.accounts.by_token("hash of a") is None
    assert stores.accounts.revoke("a") is None
    assert stores.accounts.list() == []


def test_an_account_comes_back_whole(stores: Stores, others: Stores) -> None:
    account = make_account(granted_us=2**63 - 1)
    assert stores.accounts.create(account) == account
    assert others.accounts.get("a") == account
    assert others.accounts.by_token("hash of a") == account
    assert others.accounts.list() == [account]


def test_the_token_of_a_worker_keeps_its_role_and_its_end(stores: Stores, others: Stores) -> None:
    token = make_account()._replace(role="worker", valid_until=NOW + 0.5)
    assert stores.accounts.create(token) == token
    assert others.accounts.by_token("hash of a") == token
    assert others.accounts.list() == [token]
    revoked = token._replace(state="revoked")
    assert others.accounts.revoke("a") == stores.accounts.get("a") == revoked


def test_an_account_without_a_network_is_created_and_listed_as_such(stores: Stores, others: Stores) -> None:
    offline = make_account()._replace(network="none")
    stores.accounts.create(make_account("b"))
    assert stores.accounts.create(offline) == offline
    assert others.accounts.list() == [offline, make_account("b")]
    assert set(others.accounts.offline()) == {"a"}
    assert (others.accounts.network("a"), others.accounts.network("b")) == ("none", "outbound")


def test_a_change_of_the_network_is_seen_at_once_by_its_store_and_soon_by_others(
    stores: Stores, others: Stores, clock: SetClock
) -> None:
    account = stores.accounts.create(make_account())
    changes: list[tuple[Network, set[str]]] = [("none", {"a"}), ("none", {"a"}), ("outbound", set())]
    for network, offline in changes:
        changed = stores.accounts.set_network("a", network)
        assert changed == stores.accounts.get("a") == account._replace(network=network)
        assert (stores.accounts.network("a"), set(stores.accounts.offline())) == (network, offline)
        clock.move(10)
        assert (others.accounts.network("a"), set(others.accounts.offline())) == (network, offline)
        assert others.accounts.by_token("hash of a") == changed


def test_the_network_of_an_unknown_account_cannot_be_changed(stores: Stores) -> None:
    assert stores.accounts.set_network("a", "none") is None
    assert set(stores.accounts.offline()) == set()


def test_an_account_that_is_created_again_stays_as_it_is(stores: Stores, others: Stores) -> None:
    account = stores.accounts.create(make_account())
    again = account._replace(name="other", token_hash="other", granted_us=5)
    assert others.accounts.create(again) == account
    assert stores.accounts.get("a") == account
    assert stores.accounts.by_token("other") is None


def test_a_token_of_another_account_is_a_conflict(stores: Stores, others: Stores) -> None:
    stores.accounts.create(make_account())
    with pytest.raises(IdempotencyConflict, match="fresh"):
        others.accounts.create(make_account("b")._replace(token_hash="hash of a"))
    assert stores.accounts.get("b") is None
    assert stores.accounts.by_token("hash of a") == make_account()


def test_of_many_creations_at_once_one_wins(factory: Factory, tmp_path: Path, clock: SetClock, stores: Stores) -> None:
    candidates = [make_account()._replace(name=str(number), token_hash=str(number)) for number in range(16)]
    stored = race(
        factory, tmp_path, clock, 16, lambda racer, number: racer.accounts.create(candidates[number])
    )  # fmt: skip
    assert len(set(stored)) == 1
    assert stored[0] in candidates
    assert stores.accounts.list() == [stored[0]]


def test_a_name_of_an_active_account_is_a_conflict(stores: Stores, others: Stores) -> None:
    stores.accounts.create(make_account())
    second = make_account("b")._replace(name="name of a")
    with pytest.raises(IdempotencyConflict, match=r"named 'name of a' already \(a\)"):
        others.accounts.create(second)
    assert stores.accounts.get("b") is None
    assert stores.accounts.by_token("hash of b") is None
    assert stores.accounts.create(make_account()) == make_account()


def test_the_name_of_a_revoked_account_is_free_for_one_account(stores: Stores, others: Stores) -> None:
    for number in range(3):
        account = make_account(f"{number}")._replace(name="ann")
        assert stores.accounts.create(account) == account
        with pytest.raises(IdempotencyConflict, match=f"already .{number}.:"):
            others.accounts.create(make_account("other")._replace(name="ann"))
        stores.accounts.revoke(f"{number}")


def test_of_many_accounts_of_one_name_created_at_once_one_wins(
    factory: Factory, tmp_path: Path, clock: SetClock, stores: Stores
) -> None:
    stores.accounts.create(make_account("old")._replace(name="ann"))
    stores.accounts.revoke("old")

    def create(racer: Stores, number: int) -> bool:
        try:
            patiently(lambda: racer.accounts.create(make_account(f"{number}")._replace(name="ann")))
        except IdempotencyConflict:
            return False
        return True

    assert sum(race(factory, tmp_path, clock, 8, create)) == 1
    assert [each.state for each in stores.accounts.list()].count("active") == 1


def test_accounts_are_listed_oldest_first(stores: Stores) -> None:
    for name, age_s in (("a", 1.0), ("b", 5.0), ("c", 3.0)):
        stores.accounts.create(make_account(name, created_at=NOW - age_s))
    assert [account.account_id for account in stores.accounts.list()] == ["b", "c", "a"]


def test_a_revoked_account_stays_known(stores: Stores, others: Stores) -> None:
    stores.accounts.create(make_account())
    revoked = make_account()._replace(state="revoked")
    assert stores.accounts.revoke("a") == revoked
    assert others.accounts.revoke("a") == revoked
    assert others.accounts.by_token("hash of a") == revoked


def test_a_grant_adds_once_for_each_key(stores: Stores, others: Stores) -> None:
    stores.accounts.create(make_account(granted_us=1000))
    stores.accounts.create(make_account("b", granted_us=1000))
    for each, key, granted_us in ((stores, "k", 1500), (others, "k", 1500), (others, "l", 2000), (stores, "k", 2000)):
        account = each.accounts.grant("a", key, 500)
        assert account is not None
        assert account.granted_us == granted_us
    other = stores.accounts.grant("b", "k", 500)
    assert other is not None
    assert other.granted_us == 1500


def test_a_grant_for_an_unknown_account_leaves_its_key_unused(stores: Stores) -> None:
    assert stores.accounts.grant("a", "k", 500) is None
    stores.accounts.create(make_account(granted_us=1000))
    account = stores.accounts.grant("a", "k", 500)
    assert account is not None
    assert account.granted_us == 1500


def test_a_negative_grant_takes_no_time_that_is_spent_or_reserved(stores: Stores) -> None:
    stores.accounts.create(make_account(granted_us=1000))
    stores.accounts.reserve("a", "p", 0, 300)
    stores.accounts.settle("a", "p", 200)
    stores.accounts.reserve("a", "q", 0, 100)
    for key, taken_us, granted_us in (("k", -600, 400), ("l", -600, 300), ("k", -600, 300)):
        account = stores.accounts.grant("a", key, taken_us)
        assert account is not None
        assert account.granted_us == granted_us
        assert account.free_us == granted_us - 300


def test_grants_add_up_to_the_largest_quota_at_most(stores: Stores) -> None:
    stores.accounts.create(make_account(granted_us=2**62))
    for key in ("k", "l"):
        account = stores.accounts.grant("a", key, 2**62)
        assert account is not None
        assert account.granted_us == MOST_US
        assert isinstance(account.granted_us, int)


def test_each_key_counts_once_when_many_grant_at_once(
    factory: Factory, tmp_path: Path, clock: SetClock, stores: Stores
) -> None:
    stores.accounts.create(make_account(granted_us=1000))
    race(factory, tmp_path, clock, 16, lambda racer, number: racer.accounts.grant("a", str(number % 4), 10))
    account = stores.accounts.get("a")
    assert account is not None
    assert account.granted_us == 1040
