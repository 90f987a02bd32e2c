"""AccountStore: what accounts were charged on each day."""

from datetime import UTC, datetime

import pytest

from cloudpar_master.ports import AccountRecord
from support.clock import NOW, SetClock
from support.stores import Stores

DAY_S = 86_400


def day(days: int = 0) -> str:
    """Return the day that is this many days after the first one of a test."""
    return datetime.fromtimestamp(NOW + days * DAY_S, UTC).date().isoformat()


def charged(stores: Stores, since: str = "") -> dict[tuple[str, str], tuple[int, int]]:
    """Return the charge and the number of packages by account and day."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    cursor = None
    while True:
        part = stores.accounts.usage(since or day(), cursor)
        for each in part.usage:
            charged_us, packages = found.get((each.account_id, each.day), (0, 0))
            found[each.account_id, each.day] = charged_us + each.charged_us, packages + each.packages
        cursor = part.cursor
        if cursor is None:
            return found


@pytest.fixture(autouse=True)
def accounts(stores: Stores) -> None:
    for name in "ab":
        stores.accounts.create(AccountRecord(name, f"name of {name}", f"hash of {name}", "active", 1000, 0, 0, NOW))


def test_charges_are_added_up_by_account_and_day(stores: Stores, others: Stores, clock: SetClock) -> None:
    stores.accounts.reserve("a", "p", 0, 300)
    stores.accounts.settle("a", "p", 200, 300)
    others.accounts.settle("a", "q", 30)
    stores.accounts.settle("b", "r", 5)
    clock.move(DAY_S)
    stores.accounts.settle("a", "s", 7)
    assert charged(others) == {("a", day()): (230, 2), ("b", day()): (5, 1), ("a", day(1)): (7, 1)}


def test_a_package_that_is_settled_again_counts_once(stores: Stores, others: Stores, clock: SetClock) -> None:
    stores.accounts.settle("a", "p", 200)
    clock.move(DAY_S)
    others.accounts.settle("a", "p", 200)
    assert charged(stores) == {("a", day()): (200, 1)}


def test_days_before_the_first_one_that_is_wanted_are_left_out(stores: Stores, clock: SetClock) -> None:
    stores.accounts.settle("a", "p", 1)
    clock.move(DAY_S)
    stores.accounts.settle("a", "q", 2)
    assert charged(stores, day(1)) == {("a", day(1)): (2, 1)}


def test_the_day_is_that_of_the_machines_clock(stores: Stores, clock: SetClock) -> None:
    clock.date_ahead_s = 3 * DAY_S
    stores.accounts.settle("a", "p", 1)
    assert charged(stores) == {("a", day(3)): (1, 1)}


def test_slices_that_are_not_settled_do_not_count(stores: Stores) -> None:
    stores.accounts.reserve("a", "p", 0, 300)
    assert charged(stores) == {}
