"""Claims of the next fold of a package."""

from support.packages import create
from support.stores import Stores


def test_a_claim_holds_until_its_time(stores: Stores) -> None:
    create(stores.packages, "p")
    assert stores.packages.claim("p", 100.0, 101.0)
    assert not stores.packages.claim("p", 100.5, 102.0)
    assert stores.packages.claim("p", 101.0, 102.0)
    assert not stores.packages.claim("p", 101.5, 103.0)


def test_packages_are_claimed_apart(stores: Stores) -> None:
    create(stores.packages, "p")
    create(stores.packages, "q")
    assert stores.packages.claim("p", 100.0, 101.0)
    assert stores.packages.claim("q", 100.0, 101.0)


def test_a_claim_of_a_process_whose_clock_is_ahead_does_not_count(stores: Stores) -> None:
    """Otherwise nothing would be folded until that time."""
    create(stores.packages, "p")
    assert stores.packages.claim("p", 400.0, 401.0)
    assert stores.packages.claim("p", 100.0, 101.0)
    assert not stores.packages.claim("p", 100.5, 101.5)


def test_the_fold_of_a_package_that_is_gone_can_be_claimed(stores: Stores) -> None:
    assert stores.packages.claim("p", 100.0, 101.0)


def test_a_claim_of_a_process_whose_clock_is_a_little_ahead_holds(stores: Stores) -> None:
    create(stores.packages, "p")
    assert stores.packages.claim("p", 100.3, 101.3)
    assert not stores.packages.claim("p", 100.0, 101.0)
