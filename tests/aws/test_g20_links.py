"""Links in the hands of a client that wants to do more than they allow. `make versitygw` runs this on versitygw, too.

S3 refuses every change with status 403, its answer to a signature that does not match.
"""

import time
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from msgspec.structs import replace

from cloudpar_master.adapters.aws.blob_store import S3BlobStore
from cloudpar_master.adapters.aws.clients import Clients
from cloudpar_master.ports import BlobStore
from cloudpar_protocol.limits import LINK_S, PART_BYTES
from cloudpar_protocol.parts import bounds, completion
from cloudpar_protocol.payloads import Link, Parts
from support.asgi import Answer
from support.clock import SetClock
from support.stores import Stores

from .differences import S3
from .signed_links import Refusal, Request, check

KEY = "data/a/0"
BODY = bytes(range(256)) * (PART_BYTES // 256) + b"and a last part"
BOUNDS = bounds(len(BODY))
PARTS_CRC32 = [zlib.crc32(BODY[start:end]) for start, end in BOUNDS]


@pytest.fixture
def stores(tmp_path: Path, clock: SetClock) -> Iterator[Stores]:
    with S3(tmp_path, clock) as stores:
        yield stores


def put_link(stores: Stores) -> tuple[Link, bytes]:
    return stores.blobs.put_link(KEY, 1000, zlib.crc32(BODY[:1000])), BODY[:1000]


def parts_of(stores: Stores, key: str = KEY, upload_id: str | None = None) -> Parts:
    parts = stores.blobs.part_links(key, len(BODY), PARTS_CRC32, upload_id)
    assert parts is not None
    return parts


def part_link(stores: Stores) -> tuple[Link, bytes]:
    return parts_of(stores).links[-1], BODY[PART_BYTES:]


def send_parts(stores: Stores, parts: Parts) -> bytes:
    """Upload all parts and return the request's body that completes the upload."""
    answers = [stores.transfer(link, BODY[start:end]) for link, (start, end) in zip(parts.links, BOUNDS, strict=True)]
    assert [answer.status for answer in answers] == [200] * len(BOUNDS)
    return completion([answer.headers["etag"] for answer in answers], PARTS_CRC32)


def complete_link(stores: Stores) -> tuple[Link, bytes]:
    parts = parts_of(stores)
    return parts.complete, send_parts(stores, parts)


def get_link(stores: Stores) -> tuple[Link, bytes]:
    assert stores.transfer(*put_link(stores)).status == 200
    return stores.blobs.get_link(KEY), b""


Making = Callable[[Stores], tuple[Link, bytes]]
WRITING: list[Making] = [put_link, part_link, complete_link]


def ids(value: object) -> str:
    return getattr(value, "__name__", str(value)).removesuffix("_link")


@pytest.mark.parametrize("make", [*WRITING, get_link], ids=ids)
def test_an_unchanged_link_works(stores: Stores, make: Making) -> None:
    assert stores.transfer(*make(stores)).status == 200


@pytest.mark.parametrize("make", [*WRITING, get_link], ids=ids)
def test_another_method_is_refused(stores: Stores, make: Making) -> None:
    link, body = make(stores)
    for method in {"GET", "PUT", "POST", "DELETE"} - {link.method}:
        assert_refused(stores.transfer(replace(link, method=method), body))


@pytest.mark.parametrize("make", [*WRITING, get_link], ids=ids)
def test_another_key_is_refused(stores: Stores, make: Making) -> None:
    link, body = make(stores)
    assert_refused(stores.transfer(replace(link, url=link.url.replace(KEY, "data/a/1")), body))


@pytest.mark.parametrize("make", [*WRITING, get_link], ids=ids)
def test_a_link_that_is_signed_with_another_secret_is_refused(
    stores: Stores, make: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another secret makes another signature."""
    link, body = make(stores)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "guessed")
    where = urlsplit(link.url)
    client = Clients("us-east-1", f"{where.scheme}://{where.netloc}").s3
    forged = S3BlobStore(lambda: client, where.path.split("/")[1], SetClock())
    assert_refused(stores.transfer(like(forged, link), body))


@pytest.mark.parametrize("make", [*WRITING, get_link], ids=ids)
def test_an_expired_link_is_refused(stores: Stores, make: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    link, body = make(stores)
    now = time.time()
    for age_s, refused in ((LINK_S - 60, False), (LINK_S + 5, True)):
        made = datetime.fromtimestamp(now - age_s, UTC)
        monkeypatch.setattr("botocore.auth.get_current_datetime", lambda made=made: made)
        answer = stores.transfer(like(stores.blobs, link), body)
        assert (answer.status == 403) == refused


CHANGES = [
    (put_link, "Content-Length", None), (put_link, "If-None-Match", None), (put_link, "If-None-Match", "other"),
    (put_link, "x-amz-checksum-crc32", None), (put_link, "x-amz-checksum-crc32", "AAAAAA=="),
    (part_link, "Content-Length", None),
    (part_link, "x-amz-checksum-crc32", None), (part_link, "x-amz-checksum-crc32", "AAAAAA=="),
    (complete_link, "If-None-Match", None), (complete_link, "If-None-Match", "other"),
    (complete_link, "x-amz-mp-object-size", None), (complete_link, "x-amz-mp-object-size", "5"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "name", "value"), CHANGES, ids=ids)
def test_a_changed_header_is_refused(stores: Stores, make: Making, name: str, value: str | None) -> None:
    """A header with another length stands for a body that is cut or longer."""
    link, body = make(stores)
    if name == "Content-Length":
        assert_refused(stores.transfer(link, body[:-1]))
        assert_refused(stores.transfer(link, body + b"x"))
        return
    changed = {key: text for key, text in link.headers.items() if key != name}
    assert_refused(stores.transfer(replace(link, headers=changed | ({name: value} if value else {})), body))


@pytest.mark.parametrize("make", [*WRITING, get_link], ids=ids)
def test_an_additional_header_of_amazons_is_refused(stores: Stores, make: Making) -> None:
    """An additional header could change the request's meaning: for example who may read the object."""
    link, body = make(stores)
    assert_refused(stores.transfer(link, body, {"x-amz-acl": "public-read"}))


@pytest.mark.parametrize("make", [put_link, part_link], ids=ids)
def test_another_body_is_refused(stores: Stores, make: Making) -> None:
    link, body = make(stores)
    answer = stores.transfer(link, body[::-1])
    assert (answer.status, b"BadDigest" in answer.body) == (400, True)
    assert stores.transfer(link, body).status == 200


def test_every_link_refuses_a_second_payload(stores: Stores) -> None:
    links = [put_link(stores), complete_link(stores)]
    assert stores.transfer(*links[0]).status == 200
    for link, body in links:
        answer = stores.transfer(link, body)
        assert (answer.status, b"PreconditionFailed" in answer.body) == (412, True)
    assert stores.transfer(stores.blobs.get_link(KEY)).body == BODY[:1000]


def test_parts_make_a_payload(stores: Stores) -> None:
    link, body = complete_link(stores)
    assert not stores.blobs.exists(KEY)
    assert stores.transfer(link, body).status == 200
    assert stores.transfer(stores.blobs.get_link(KEY)).body == BODY


def test_links_are_renewed_for_parts_that_are_there(stores: Stores) -> None:
    first = parts_of(stores)
    body = send_parts(stores, first)
    again = parts_of(stores, upload_id=first.upload_id)
    assert again.upload_id == first.upload_id
    assert stores.transfer(again.complete, body).status == 200
    assert stores.transfer(stores.blobs.get_link(KEY)).body == BODY


EXAMPLE = Request(
    "GET",
    "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256"
    "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
    "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
    "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404",
    {"host": "examplebucket.s3.amazonaws.com"},
    b"",
)
"""AWS's example from "Authenticating Requests: Using Query Parameters"; 2013-05-24 is the second 1369353600."""

EXAMPLE_SECRETS = {"AKIAIOSFODNN7EXAMPLE": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}


def test_amazons_example_is_good_for_a_day() -> None:
    check(EXAMPLE, 1369353600, EXAMPLE_SECRETS)
    check(EXAMPLE, 1369353600 + 86400, EXAMPLE_SECRETS)
    with pytest.raises(Refusal, match="AccessDenied"):
        check(EXAMPLE, 1369353600 + 86401, EXAMPLE_SECRETS)


@pytest.mark.parametrize(
    "changed",
    [
        EXAMPLE._replace(method="PUT"),
        EXAMPLE._replace(target=EXAMPLE.target.replace("test", "tset")),
        EXAMPLE._replace(target=EXAMPLE.target.replace("86400", "86401")),
        EXAMPLE._replace(target=EXAMPLE.target.replace("us-east-1", "us-east-2")),
        EXAMPLE._replace(target=EXAMPLE.target.replace("T000000Z", "T000001Z")),
        EXAMPLE._replace(target=EXAMPLE.target.replace("4d404", "4d405")),
        EXAMPLE._replace(target=EXAMPLE.target + "&partNumber=1"),
        EXAMPLE._replace(headers={"host": "another.s3.amazonaws.com"}),
        EXAMPLE._replace(headers={**EXAMPLE.headers, "x-amz-acl": "public-read"}),
        EXAMPLE._replace(target="/test.txt"),
    ],
    ids=["method", "key", "expiry", "region", "time", "signature", "parameter", "host", "header", "unsigned"],
)
def test_amazons_example_when_it_is_changed(changed: Request) -> None:
    with pytest.raises(Refusal, match=r"SignatureDoesNotMatch|AccessDenied"):
        check(changed, 1369353600, EXAMPLE_SECRETS)


def assert_refused(answer: Answer) -> None:
    # Not with the completion link's method: there S3 first checks whether such a call exists.
    assert answer.status in {403, 405}, answer


def like(blobs: BlobStore, link: Link) -> Link:
    """Return a new link that does the same."""
    upload_id = dict(parse_qsl(urlsplit(link.url).query)).get("uploadId")
    if upload_id is not None:
        parts = blobs.part_links(KEY, len(BODY), PARTS_CRC32, upload_id)
        assert parts is not None
        return parts.complete if link.method == "POST" else parts.links[-1]
    return blobs.get_link(KEY) if link.method == "GET" else blobs.put_link(KEY, 1000, zlib.crc32(BODY[:1000]))
