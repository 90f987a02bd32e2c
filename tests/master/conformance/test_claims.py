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
