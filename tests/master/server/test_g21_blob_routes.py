"""Requests to the blobs' routes that no link leads to are refused. The store's conformance suite tests the links."""

import zlib
from collections.abc import Callable
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import pytest

from cloudpar_master.server.blob_routes import parse_range
from cloudpar_protocol.errors import BadRequest

from .served import Served, error

BODY = b"payload"
METHODS = ["GET", "PUT"]
PARTS = ["expires", "size", "crc32", "signature"]
VALUES = [None, "", "x", "-1", "1e999", "nan", "9" * 5000, "é", "\x00", "1\n2"]
KEYS = ["", "..", "../master.sqlite", "%2e%2e/secret", "a\x00b", "a" * 5000, "/etc/passwd"]


def query(served: Served, method: str, key: str = "k") -> dict[str, str]:
    """Return the parts of a valid link."""
    blobs = served.assembly.blobs
    link = blobs.put_link(key, len(BODY), zlib.crc32(BODY)) if method == "PUT" else blobs.get_link(key)
    return dict(parse_qsl(urlsplit(link.url).query))


def put(served: Served, key: str = "k") -> None:
    path = f"/blobs/{quote(key)}?{urlencode(query(served, 'PUT', key))}"
    assert served.send("PUT", path, BODY).status == 200


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("value", VALUES)
def test_a_malformed_link_is_refused(
    served: Served, method: str, part: str, value: str | None, reached: Callable[..., None]
) -> None:
    put(served)
    parts = query(served, method)
    parts.pop(part, None)
    if value is not None:
        parts[part] = value
    elif part not in query(served, method):
        parts["another"] = "part"
    answer = served.send(method, f"/blobs/k?{urlencode(parts)}", BODY)
    assert (answer.status, error(answer).code) == (403, "forbidden")
    reached("/blobs: {links} malformed links refused", links=1)


def test_no_part_of_a_link_passes_for_another_one(served: Served) -> None:
    """A line break in a key or a value must not let it be signed like another part."""
    parts = query(served, "GET", "k\nexpires=99999999999")
    for path in ("k", "k\nexpires=99999999999"):
        for expires in ("99999999999", f"99999999999\n{parts['expires']}"):
            forged = {"expires": expires, "signature": parts["signature"]}
            assert served.send("GET", f"/blobs/{quote(path)}?{urlencode(forged)}").status in {403, 404}


@pytest.mark.parametrize("key", KEYS)
def test_an_unsigned_key_is_refused(served: Served, key: str, reached: Callable[..., None]) -> None:
    for method in METHODS:
        answer = served.send(method, f"/blobs/{quote(key)}", BODY)
        assert (answer.status, error(answer).code) == (403, "forbidden")
    reached("/blobs: {keys} unsigned keys refused", keys=1)


@pytest.mark.parametrize("method", ["HEAD", "DELETE", "POST", "PATCH", "OPTIONS"])
def test_methods_that_no_link_has_are_refused(served: Served, method: str) -> None:
    put(served)
    answer = served.send(method, f"/blobs/k?{urlencode(query(served, 'GET'))}")
    assert answer.status == (403 if method == "HEAD" else 405)


def test_a_blob_is_served_as_bytes_of_no_type(served: Served) -> None:
    put(served)
    answer = served.send("GET", f"/blobs/k?{urlencode(query(served, 'GET'))}")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["accept-ranges"] == "bytes"


def test_an_upload_may_come_in_parts_up_to_the_size_of_its_link(served: Served) -> None:
    path = f"/blobs/k?{urlencode(query(served, 'PUT'))}"
    assert served.send("PUT", path, [b"x" * 10**6] * 1000).status == 413
    assert served.send("PUT", path, [b"pay", b"", b"load"]).status == 200


@pytest.mark.parametrize(
    "header",
    ["", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=1", "bytes=--1", "bytes=0-1,4-5", "lines=0-1", "bytes=0x1-2",
     "bytes=1 - 2", "bytes=٣-٤", "bytes=" + "9" * 30 + "-"],
)  # fmt: skip
def test_a_malformed_range_is_refused(header: str) -> None:
    with pytest.raises(BadRequest, match="bytes=0-99"):
        parse_range(header, 10)
