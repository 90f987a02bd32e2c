"""BlobStore: what the holder of a link can do with it, and what is refused."""

import zlib
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace

from support.asgi import Answer
from support.stores import Stores

KEY = "results/p/l/0"
BODY = bytes(range(256)) * 40


def put(stores: Stores, body: bytes = BODY, key: str = KEY, *, sent: bytes | None = None) -> Answer:
    link = stores.blobs.put_link(key, len(body), zlib.crc32(body))
    return stores.transfer(link, body if sent is None else sent)


def get(stores: Stores, key: str = KEY, **headers: str) -> Answer:
    return stores.transfer(stores.blobs.get_link(key), headers=headers)


def refused(answer: Answer) -> bool:
    return 400 <= answer.status < 500


@pytest.mark.parametrize("body", [b"", b"x", BODY, bytes(3_000_000)], ids=["empty", "byte", "some", "large"])
def test_an_uploaded_blob_can_be_read(stores: Stores, others: Stores, body: bytes) -> None:
    assert put(stores, body).status == 200
    answer = get(others)
    assert (answer.status, answer.body) == (200, body)
    assert answer.headers["content-length"] == str(len(body))


@pytest.mark.parametrize(
    "key", ["a", "a/b", "a.b/..c/...", "é 漢%2F/#?&=+", "a/../b", "a%2Fb", "a" * 200, "漢" * 100 + "/" + "é" * 100]
)
def test_a_blob_may_have_any_name(stores: Stores, key: str) -> None:
    assert not stores.blobs.exists(key)
    assert put(stores, key=key).status == 200
    assert get(stores, key).body == BODY
    assert stores.blobs.exists(key)
    stores.blobs.delete(key)
    assert not stores.blobs.exists(key)


def test_blobs_of_similar_keys_are_apart(stores: Stores) -> None:
    keys = ["a", "a/b", "a/b/c", "a.b", "a%2Fb", "a%252Fb", "a%2Eb", "A", "a.blob", "..", "a" * 300, "a" * 301]
    for number, key in enumerate(keys):
        assert put(stores, bytes([number]), key).status == 200
    assert [get(stores, key).body for key in keys] == [bytes([number]) for number in range(len(keys))]


def test_a_missing_blob_is_answered_with_404_and_may_be_deleted(stores: Stores) -> None:
    assert not stores.blobs.exists(KEY)
    assert get(stores).status == 404
    stores.blobs.delete(KEY)
    stores.blobs.delete("results/p/")


def test_exists_is_false_for_the_prefix_of_a_key(stores: Stores) -> None:
    put(stores)
    assert stores.blobs.exists(KEY)
    assert not stores.blobs.exists("results/p/l")
    assert not stores.blobs.exists(f"{KEY}/0")


def test_the_same_upload_again_succeeds(stores: Stores, others: Stores) -> None:
    assert [put(each).status for each in (stores, stores, others)] == [200] * 3
    assert get(stores).body == BODY


@pytest.mark.parametrize("other", [b"", BODY[:-1], BODY[::-1], BODY + b"x"], ids=["empty", "short", "other", "long"])
def test_a_second_different_upload_is_refused(stores: Stores, other: bytes) -> None:
    put(stores)
    assert put(stores, other).status in {409, 412}
    assert get(stores).body == BODY


@pytest.mark.parametrize("sent", [b"", BODY[:-1], BODY[::-1], BODY + b"x"], ids=["empty", "short", "other", "long"])
def test_an_upload_that_differs_from_its_link_is_refused(stores: Stores, sent: bytes) -> None:
    assert refused(put(stores, sent=sent))
    assert not stores.blobs.exists(KEY)
    assert put(stores).status == 200


def test_a_link_without_its_signature_is_refused(stores: Stores) -> None:
    put(stores)
    link = stores.blobs.get_link(KEY)
    bare = urlsplit(link.url)._replace(query="").geturl()
    assert refused(stores.transfer(replace(link, url=bare)))


@pytest.mark.parametrize("direction", ["GET", "PUT"])
def test_a_link_with_any_character_of_its_query_changed_is_refused(stores: Stores, direction: str) -> None:
    put(stores, key="other")
    if direction == "GET":
        link = stores.blobs.get_link("other")
    else:
        link = stores.blobs.put_link(KEY, len(BODY), zlib.crc32(BODY))
    start = link.url.index("?") + 1
    for at in range(start, len(link.url)):
        swapped = "1" if link.url[at] != "1" else "2"
        url = link.url[:at] + swapped + link.url[at + 1 :]
        assert refused(stores.transfer(replace(link, url=url), BODY if direction == "PUT" else b"")), url
    assert not stores.blobs.exists(KEY)


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [("0-0", 0, 1), ("0-99", 0, 100), ("100-199", 100, 200), ("10200-", 10200, 10240), ("10230-99999", 10230, 10240),
     ("-5", 10235, 10240), ("-99999", 0, 10240)],
)  # fmt: skip
def test_a_byte_range_of_a_blob_can_be_read(stores: Stores, asked: str, start: int, end: int) -> None:
    put(stores)
    answer = get(stores, range=f"bytes={asked}")
    assert (answer.status, answer.body) == (206, BODY[start:end])
    assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/{len(BODY)}"
    assert answer.headers["content-length"] == str(end - start)


@pytest.mark.parametrize("asked", ["10240-", "10240-10250", "99999-", "-0"])
def test_a_range_outside_of_the_blob_is_refused(stores: Stores, asked: str) -> None:
    put(stores)
    assert get(stores, range=f"bytes={asked}").status == 416


def test_a_range_of_an_empty_blob_is_refused(stores: Stores) -> None:
    put(stores, b"")
    assert get(stores, range="bytes=0-0").status == 416


def test_a_deleted_blob_is_gone_and_those_with_similar_keys_stay(stores: Stores, others: Stores) -> None:
    for key in ("a/b", "a/bc", "a/b/c"):
        put(stores, key=key)
    others.blobs.delete("a/b")
    assert [stores.blobs.exists(key) for key in ("a/b", "a/bc", "a/b/c")] == [False, True, True]


def test_a_deleted_prefix_takes_the_blobs_below_it_along(stores: Stores) -> None:
    keys = ["p/a", "p/a/0", "p/a/b/1", "p/ab/0", "q/a/0"]
    for key in keys:
        put(stores, key=key)
    stores.blobs.delete("p/a/")
    assert [stores.blobs.exists(key) for key in keys] == [True, False, False, True, True]


def test_a_key_that_looks_like_all_blobs_deletes_none(stores: Stores) -> None:
    put(stores)
    for key in ("", "/", "../", "..", ".", "./", "*"):
        stores.blobs.delete(key)
    assert stores.blobs.exists(KEY)


def test_a_deleted_blob_may_be_uploaded_again(stores: Stores) -> None:
    put(stores)
    stores.blobs.delete(KEY)
    assert put(stores, b"other").status == 200
    assert get(stores).body == b"other"


def test_uploads_of_an_account_are_listed_with_their_sizes_until_they_are_deleted(
    stores: Stores, others: Stores
) -> None:
    for key in ("code/a/1", "data/a/2", "data/ab/3", "results/a/l/0"):
        assert put(stores, key=key).status == 200
    assert sorted(others.blobs.uploads("a")) == [("code/a/1", len(BODY)), ("data/a/2", len(BODY))]
    stores.blobs.delete("data/a/2")
    assert list(others.blobs.uploads("a")) == [("code/a/1", len(BODY))]
    assert list(others.blobs.uploads("none")) == []
