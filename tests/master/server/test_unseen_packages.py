"""Which new packages of a session the master remembers until an await names them."""

from cloudpar_master.server.unseen_packages import SESSIONS, UnseenPackages
from cloudpar_protocol.limits import BULK_ITEMS


def test_a_package_that_an_await_does_not_name_counts_once() -> None:
    unseen = UnseenPackages()
    for package_id in ("p", "q"):
        unseen.add("ann", "s", package_id)
    assert not unseen.any_besides("bob", "s", [])
    assert unseen.any_besides("ann", "s", ["p"])
    assert not unseen.any_besides("ann", "s", [])


def test_packages_that_the_await_names_do_not_count() -> None:
    unseen = UnseenPackages()
    unseen.add("ann", "s", "p")
    assert not unseen.any_besides("ann", "s", ["p", "q"])


def test_a_session_that_never_awaits_takes_little_memory() -> None:
    unseen = UnseenPackages()
    for number in range(10 * BULK_ITEMS):
        unseen.add("ann", "s", f"p{number}")
    assert len(unseen._accounts["ann"]["s"]) == BULK_ITEMS
    assert unseen.any_besides("ann", "s", [f"p{number}" for number in range(9 * BULK_ITEMS, 10 * BULK_ITEMS - 1)])


def test_an_account_with_many_sessions_makes_the_master_forget_its_own_only() -> None:
    unseen = UnseenPackages()
    unseen.add("bob", "s", "p")
    for number in range(2 * SESSIONS):
        unseen.add("ann", f"s{number}", "p")
    assert not unseen.any_besides("ann", "s0", [])
    assert unseen.any_besides("bob", "s", [])


def test_accounts_without_new_packages_are_not_remembered() -> None:
    unseen = UnseenPackages()
    unseen.add("ann", "s", "p")
    unseen.any_besides("ann", "s", [])
    assert not unseen._accounts
