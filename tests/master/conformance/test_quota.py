"""AccountStore: slices and settlements."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cloudpar_master.ports import AccountRecord, Reservation
from master.races import race
from support.clock import NOW, SetClock
from support.stores import Factory, Stores


@pytest.fixture(autouse=True)
def account(stores: Stores) -> None:
    stores.accounts.create(AccountRecord("a", "name", "hash", "active", 1000, 0, 0, NOW))


def figures(stores: Stores, account_id: str = "a") -> tuple[int, int]:
    """Return what is spent and what is reserved."""
    account = stores.accounts.get(account_id)
    assert account is not None
    return account.spent_us, account.reserved_us


def test_a_slice_is_reserved_once(stores: Stores, others: Stores) -> None:
    for each, wanted_us in ((stores, 300), (others, 300), (stores, 900)):
        assert each.accounts.reserve("a", "p", 0, wanted_us) == Reservation(300, exhausted=False)
    assert figures(others) == (0, 300)
    assert stores.accounts.reserve("a", "p", 1, 100) == Reservation(100, exhausted=False)
    assert figures(others) == (0, 400)


def test_a_slice_is_at_most_what_is_free(stores: Stores) -> None:
    assert stores.accounts.reserve("a", "p", 0, 700).granted_us == 700
    assert stores.accounts.reserve("a", "q", 0, 700).granted_us == 300
    assert figures(stores) == (0, 1000)


def test_an_empty_account_is_not_exhausted_while_another_package_holds_a_slice(stores: Stores) -> None:
    """The slice of the other package may come back."""
    stores.accounts.reserve("a", "p", 0, 600)
    stores.accounts.reserve("a", "q", 0, 400)
    assert stores.accounts.reserve("a", "p", 1, 10) == Reservation(0, exhausted=False)


def test_an_account_is_exhausted_without_another_packages_slice_until_it_is_granted_more(stores: Stores) -> None:
    stores.accounts.reserve("a", "p", 0, 1000)
    assert stores.accounts.reserve("a", "p", 1, 10) == Reservation(0, exhausted=True)
    stores.accounts.grant("a", "more", 100)
    assert stores.accounts.reserve("a", "p", 1, 10) == Reservation(10, exhausted=False)


def test_an_unknown_account_gets_and_pays_nothing(stores: Stores) -> None:
    assert stores.accounts.reserve("unknown", "p", 0, 10) == Reservation(0, exhausted=True)
    assert stores.accounts.settle("unknown", "p", 10) == 0


def test_settling_spends_and_gives_back_once(stores: Stores, others: Stores) -> None:
    stores.accounts.reserve("a", "p", 0, 300)
    stores.accounts.reserve("a", "p", 1, 200)
    stores.accounts.reserve("a", "q", 0, 100)
    for each, used_us in ((stores, 350), (others, 350), (stores, 400)):
        assert each.accounts.settle("a", "p", used_us) == 350
    assert figures(others) == (350, 100)


def test_settling_takes_from_what_is_free_but_not_from_other_packages(stores: Stores) -> None:
    stores.accounts.reserve("a", "p", 0, 300)
    stores.accounts.reserve("a", "q", 0, 500)
    assert stores.accounts.settle("a", "p", 450) == 450
    assert stores.accounts.settle("a", "r", 80) == 50
    assert stores.accounts.settle("a", "q", 9999) == 500
    assert figures(stores) == (1000, 0)


def test_a_settled_package_gets_nothing_any_more(stores: Stores, others: Stores) -> None:
    """If a slow caller's reservation came after the package's end, no later call would give it back."""
    stores.accounts.reserve("a", "p", 0, 300)
    stores.accounts.settle("a", "p", 10)
    for number in (0, 1):
        assert others.accounts.reserve("a", "p", number, 300).granted_us == 0
    assert figures(stores) == (10, 0)


def test_a_revoked_account_grants_no_further_slice(stores: Stores, others: Stores) -> None:
    """A package may have started a moment before, so that the revocation missed it."""
    stores.accounts.reserve("a", "p", 0, 300)
    others.accounts.revoke("a")
    assert stores.accounts.reserve("a", "p", 0, 300) == Reservation(300, exhausted=False)
    assert stores.accounts.reserve("a", "p", 1, 300) == Reservation(0, exhausted=True)
    assert stores.accounts.settle("a", "p", 250) == 250
    assert figures(others) == (250, 0)


def test_many_reservations_at_once_stay_within_the_quota(
    factory: Factory, tmp_path: Path, clock: SetClock, stores: Stores
) -> None:
    def reserve(racer: Stores, number: int) -> int:
        return sum(racer.accounts.reserve("a", f"p{number}", turn, 37).granted_us for turn in range(5))

    granted_us = race(factory, tmp_path, clock, 16, reserve)
    assert sum(granted_us) == 1000
    assert figures(stores) == (0, 1000)


def test_a_slice_that_many_reserve_at_once_is_reserved_once(
    factory: Factory, tmp_path: Path, clock: SetClock, stores: Stores
) -> None:
    answers = race(factory, tmp_path, clock, 16, lambda racer, _: racer.accounts.reserve("a", "p", 0, 100))
    assert answers == [Reservation(100, exhausted=False)] * 16
    assert figures(stores) == (0, 100)


def test_a_package_that_many_settle_at_once_is_charged_once(
    factory: Factory, tmp_path: Path, clock: SetClock, stores: Stores
) -> None:
    stores.accounts.reserve("a", "p", 0, 100)
    assert race(factory, tmp_path, clock, 16, lambda racer, _: racer.accounts.settle("a", "p", 60)) == [60] * 16
    assert figures(stores) == (60, 0)


Step = tuple[str, int, int, int]
KINDS = st.sampled_from(["reserve", "settle", "grant"])
STEPS = st.lists(st.tuples(KINDS, st.integers(0, 2), st.integers(0, 2), st.integers(0, 900)), max_size=25)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_spent_and_reserved_time_always_add_up(stores: Stores, steps: list[Step]) -> None:
    """Calls may come in any order and any number of times: spent + reserved <= granted, and each slice stays known."""
    run = stores.ids.fresh()
    stores.accounts.create(AccountRecord(run, f"name of {run}", run, "active", 1000, 0, 0, NOW))
    held: dict[str, dict[int, int]] = {}
    charged: dict[str, int] = {}
    for kind, package, number, amount_us in steps:
        package_id = f"{run}#{package}"
        if kind == "grant":
            stores.accounts.grant(run, f"{number}", amount_us - 450)
        elif kind == "reserve":
            got = stores.accounts.reserve(run, package_id, number, amount_us)
            if package_id in charged:
                assert got.granted_us == 0
            elif got.granted_us:
                known = held.setdefault(package_id, {}).setdefault(number, got.granted_us)
                assert known == got.granted_us
        else:
            charge_us = stores.accounts.settle(run, package_id, amount_us)
            assert charge_us == charged.setdefault(package_id, charge_us)
            assert charge_us <= max(amount_us, charged[package_id])
            held.pop(package_id, None)
        account = stores.accounts.get(run)
        assert account is not None
        assert account.reserved_us == sum(sum(slices.values()) for slices in held.values())
        assert account.spent_us == sum(charged.values())
        assert account.spent_us + account.reserved_us <= account.granted_us
