"""PackageStore: result pages."""

import pytest
from msgspec.structs import replace

from cloudpar_master.ports import ResultPage
from cloudpar_protocol.payloads import TaskResult
from support.clock import NOW
from support.packages import create, forget, make_results, put_page
from support.stores import Stores

PLENTY = 10_000_000


@pytest.fixture(autouse=True)
def packages(stores: Stores) -> None:
    for name in ("p", "q"):
        create(stores.packages, name, version=1)


def versions(stores: Stores, after: int, until: int, room: int = PLENTY) -> list[int]:
    return [page.version for page in stores.packages.pages("p", after, until, room)]


def skip_to(stores: Stores, version: int) -> None:
    """Save versions that commit no results."""
    head = stores.packages.load("p")
    assert head is not None
    for number in range(head.version + 1, version):
        assert stores.packages.save(replace(head, version=number), NOW)


def test_a_page_comes_back_whole(stores: Stores, others: Stores) -> None:
    results = make_results(3)
    version = put_page(stores.packages, results)
    assert others.packages.pages("p", 0, 9, PLENTY) == [ResultPage(version, results)]
    assert others.packages.pages("q", 0, 9, PLENTY) == []


def test_pages_are_read_between_two_versions(stores: Stores) -> None:
    for version in (2, 3, 5, 12, 20):
        skip_to(stores, version)
        assert put_page(stores.packages, make_results(version)) == version
    assert versions(stores, 0, 1000) == [2, 3, 5, 12, 20]
    assert versions(stores, 3, 12) == [5, 12]
    assert versions(stores, 2, 4) == [3]
    assert versions(stores, 12, 12) == []
    assert versions(stores, 20, 1000) == []


def test_the_loser_of_the_race_for_a_version_leaves_no_page(stores: Stores, others: Stores) -> None:
    head = stores.packages.load("p")
    assert head is not None
    winner, loser = make_results(1, size=100_000), make_results(2, size=100_000)
    assert stores.packages.save(replace(head, version=2, page=2), NOW, winner)
    assert not others.packages.save(replace(head, version=2, page=2), NOW, loser)
    assert stores.packages.pages("p", 0, 9, PLENTY) == [ResultPage(2, winner)]


def test_pages_are_read_up_to_about_the_limit_and_at_least_one(stores: Stores) -> None:
    made = [put_page(stores.packages, make_results(number, size=10_000)) for number in range(10)]
    assert versions(stores, 0, 20, 1) == made[:1]
    assert versions(stores, made[8], 20, 1) == made[9:]
    assert 4 <= len(versions(stores, 0, 20, 50_000)) <= 6
    assert versions(stores, 0, 20) == made


def test_a_page_of_over_a_megabyte_comes_back_whole(stores: Stores) -> None:
    """A fold commits several publications at once, which may be more than an item of a table holds."""
    results = make_results(1, size=1_100_000)
    version = put_page(stores.packages, results)
    assert stores.packages.pages("p", 0, 9, 1) == [ResultPage(version, results)]


def test_a_page_of_many_results_comes_back_whole(stores: Stores) -> None:
    results = [TaskResult(index, "ok", 1, data=b"\x80") for index in range(20_000)]
    version = put_page(stores.packages, results)
    assert stores.packages.pages("p", 0, 9, 1) == [ResultPage(version, results)]


def test_deleted_pages_are_gone(stores: Stores, others: Stores) -> None:
    put_page(stores.packages, make_results(2))
    put_page(stores.packages, make_results(2), "q")
    others.packages.delete_pages("p")
    assert stores.packages.pages("p", 0, 9, PLENTY) == []
    assert len(stores.packages.pages("q", 0, 9, PLENTY)) == 1


def test_a_forgotten_package_takes_its_pages_along(stores: Stores) -> None:
    put_page(stores.packages, make_results(2))
    forget(stores.packages)
    assert stores.packages.pages("p", 0, 9, PLENTY) == []
