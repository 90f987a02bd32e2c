"""PackageStore: result pages."""

import pytest

from cloudpar_protocol.payloads import TaskResult
from master.packages import make_head, make_page, make_spec
from master.stores import Stores

PLENTY = 10_000_000


@pytest.fixture(autouse=True)
def packages(stores: Stores) -> None:
    for name in ("p", "q"):
        stores.packages.create(make_spec(name), make_head(make_spec(name), 1))


def versions(stores: Stores, after: int, until: int, room: int = PLENTY) -> list[int]:
    return [page.version for page in stores.packages.pages("p", after, until, room)]


def test_a_page_comes_back_whole(stores: Stores, others: Stores) -> None:
    page = make_page(3, "nonce", before=(2, "other"))
    stores.packages.put_page("p", page)
    assert others.packages.pages("p", 0, 9, PLENTY) == [page]
    assert others.packages.pages("q", 0, 9, PLENTY) == []


def test_after_and_until(stores: Stores) -> None:
    for version in (5, 1, 300, 2, 20):
        stores.packages.put_page("p", make_page(version))
    assert versions(stores, 0, 1000) == [1, 2, 5, 20, 300]
    assert versions(stores, 2, 20) == [5, 20]
    assert versions(stores, 1, 4) == [2]
    assert versions(stores, 20, 20) == []
    assert versions(stores, 300, 1000) == []


def test_one_version_may_have_several(stores: Stores) -> None:
    pages = [make_page(2, nonce) for nonce in ("b", "a", "c")]
    for page in pages:
        stores.packages.put_page("p", page)
    read = stores.packages.pages("p", 1, 2, PLENTY)
    assert sorted(read) == sorted(pages)


def test_putting_a_page_again_changes_nothing(stores: Stores, others: Stores) -> None:
    page = make_page(2)
    for each in (stores, others, stores):
        each.packages.put_page("p", page)
    assert stores.packages.pages("p", 0, 9, PLENTY) == [page]


def test_about_so_many_bytes_but_two_at_least(stores: Stores) -> None:
    for version in range(1, 11):
        stores.packages.put_page("p", make_page(version, size=10_000))
    assert versions(stores, 0, 10, 1) == [1, 2]
    assert versions(stores, 9, 10, 1) == [10]
    assert 4 <= len(versions(stores, 0, 10, 50_000)) <= 6
    assert versions(stores, 0, 10) == list(range(1, 11))


def test_a_large_page(stores: Stores) -> None:
    """A fold commits several publications at once; an item of a table may hold less."""
    page = make_page(1, size=1_100_000)
    stores.packages.put_page("p", page)
    assert stores.packages.pages("p", 0, 1, 1) == [page]


def test_a_page_of_many_results(stores: Stores) -> None:
    page = make_page(1)._replace(results=[TaskResult(index, "ok", 1, data=b"\x80") for index in range(20_000)])
    stores.packages.put_page("p", page)
    assert stores.packages.pages("p", 0, 1, 1) == [page]


def test_deleted_pages_are_gone(stores: Stores, others: Stores) -> None:
    stores.packages.put_page("p", make_page(2))
    stores.packages.put_page("q", make_page(2))
    others.packages.delete_pages("p")
    assert stores.packages.pages("p", 0, 9, PLENTY) == []
    assert stores.packages.pages("q", 0, 9, PLENTY) == [make_page(2)]


def test_forget_takes_the_pages_along(stores: Stores) -> None:
    stores.packages.put_page("p", make_page(2))
    stores.packages.forget("p")
    assert stores.packages.pages("p", 0, 9, PLENTY) == []
