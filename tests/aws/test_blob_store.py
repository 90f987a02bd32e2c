"""S3BlobStore: what its links sign, how long code is kept, and how it repeats what S3 did not do."""

import base64
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore.exceptions import ClientError

from cloudpar_master.adapters.aws.backoff import ATTEMPTS
from cloudpar_master.adapters.aws.blob_store import FRESH_S, S3BlobStore
from cloudpar_master.adapters.aws.clients import Clients
from cloudpar_protocol.errors import Unavailable
from cloudpar_protocol.limits import BLOB_BYTES, LINK_S, PART_BYTES
from cloudpar_protocol.payloads import Parts
from support.clock import NOW, SetClock
from support.stores import Stores

from .stubs import ANY, Stubber, offline, stubbed

BODY = b"payload"
CRC32 = zlib.crc32(BODY)


def store(client: Any = None) -> S3BlobStore:
    return S3BlobStore(lambda: client or offline().s3, "bucket", SetClock())


@pytest.fixture
def stub() -> Iterator[Stubber]:
    with stubbed(offline().s3) as stub:
        yield stub


def test_an_upload_is_signed_with_its_size_its_checksum_and_that_it_is_the_first() -> None:
    link = store().put_link("data/a/b", len(BODY), CRC32)
    query = parse_qs(urlsplit(link.url).query)
    assert link.method == "PUT"
    assert query["X-Amz-SignedHeaders"] == ["content-length;host;if-none-match;x-amz-checksum-crc32"]
    assert query["X-Amz-Algorithm"] == ["AWS4-HMAC-SHA256"]
    assert query["X-Amz-Expires"] == [str(LINK_S)]
    assert link.headers == {
        "Content-Length": "7",
        "If-None-Match": "*",
        "x-amz-checksum-crc32": base64.b64encode(CRC32.to_bytes(4, "big")).decode(),
    }


def test_a_download_is_good_for_any_range() -> None:
    link = store().get_link("data/a/b")
    assert (link.method, link.headers) == ("GET", {})
    assert parse_qs(urlsplit(link.url).query)["X-Amz-SignedHeaders"] == ["host"]


SIZE = PART_BYTES + 5
ADDRESS = {"Bucket": "bucket", "Key": "data/a/b"}


def parts_of(upload_id: str | None = None) -> Parts:
    parts = store().part_links("data/a/b", SIZE, [1, 2], upload_id)
    assert parts is not None
    return parts


def test_parts_are_begun_with_one_call_and_renewed_with_none(stub: Stubber) -> None:
    expected = {**ADDRESS, "ChecksumAlgorithm": "CRC32"}
    stub.add_response("create_multipart_upload", {"UploadId": "u"}, expected)
    made, again = parts_of(), parts_of("u")
    assert made.upload_id == again.upload_id == "u"
    assert [urlsplit(link.url).path for link in made.links] == [urlsplit(link.url).path for link in again.links]


def test_a_part_is_signed_with_its_size_and_its_checksum() -> None:
    first, second = parts_of("u").links
    assert (first.method, second.method) == ("PUT", "PUT")
    assert first.headers == {"Content-Length": str(PART_BYTES), "x-amz-checksum-crc32": "AAAAAQ=="}
    assert second.headers == {"Content-Length": "5", "x-amz-checksum-crc32": "AAAAAg=="}
    query = parse_qs(urlsplit(second.url).query)
    assert (query["uploadId"], query["partNumber"], query["X-Amz-Expires"]) == (["u"], ["2"], [str(LINK_S)])
    assert query["X-Amz-SignedHeaders"] == ["content-length;host;x-amz-checksum-crc32"]


def test_the_last_step_is_signed_with_the_size_of_the_whole_and_that_it_is_the_first() -> None:
    complete = parts_of("u").complete
    assert complete.method == "POST"
    assert complete.headers == {"If-None-Match": "*", "x-amz-mp-object-size": str(SIZE)}
    query = parse_qs(urlsplit(complete.url).query)
    assert (query["uploadId"], "partNumber" in query) == (["u"], False)
    assert query["X-Amz-SignedHeaders"] == ["host;if-none-match;x-amz-mp-object-size"]


def test_an_upload_in_parts_that_is_not_complete_counts_as_the_largest_blob(stub: Stubber) -> None:
    listed = {"IsTruncated": False, "KeyCount": 1}
    for prefix in ("code/a/", "data/a/"):
        where = {"Bucket": "bucket", "Prefix": prefix}
        stub.add_response("list_objects_v2", {**listed, "Contents": [{"Key": f"{prefix}1", "Size": 5}]}, where)
        stub.add_response("list_multipart_uploads", {"Uploads": [{"Key": f"{prefix}2", "UploadId": "u"}]}, where)
    sizes = {"1": 5, "2": BLOB_BYTES}
    assert list(store().uploads("a")) == [
        (f"{prefix}{name}", size) for prefix in ("code/a/", "data/a/") for name, size in sizes.items()
    ]
    assert store().free_bytes() is None  # type: ignore[func-returns-value]  # the bucket is never full


def test_a_link_names_its_region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    client = Clients("eu-west-1").s3  # makes links and sends no request
    url = urlsplit(store(client).get_link("k").url)
    assert (url.scheme, url.hostname) == ("https", "bucket.s3.eu-west-1.amazonaws.com")


def head(age_s: float) -> dict[str, Any]:
    return {"LastModified": datetime.fromtimestamp(NOW - age_s, UTC)}


def test_fresh_code_is_left_alone(stub: Stubber) -> None:
    stub.add_response("head_object", head(FRESH_S - 1), {"Bucket": "bucket", "Key": "code/a/h"})
    assert store().exists("code/a/h")


def test_old_code_is_written_again(stub: Stubber) -> None:
    stub.add_response("head_object", head(FRESH_S + 1))
    expected = {
        "Bucket": "bucket",
        "Key": "code/a/h",
        "CopySource": ANY,
        "MetadataDirective": "REPLACE",
    }
    stub.add_response("copy_object", {}, expected)
    assert store().exists("code/a/h")


def test_a_blob_keeps_its_content_when_it_is_written_again(stores: Stores, clock: SetClock) -> None:
    stores.transfer(stores.blobs.put_link("code/a/h", len(BODY), CRC32), BODY)
    clock.move(100 * 365 * 86400.0)
    assert stores.blobs.exists("code/a/h")
    assert stores.transfer(stores.blobs.get_link("code/a/h")).body == BODY


def test_code_that_expires_while_it_is_looked_at_is_missing(stub: Stubber) -> None:
    stub.add_response("head_object", head(FRESH_S + 1))
    stub.add_client_error("copy_object", "NoSuchKey", http_status_code=404)
    assert not store().exists("code/a/h")


def test_a_missing_blob_is_answered_with_403_without_the_right_to_list(stub: Stubber) -> None:
    stub.add_client_error("head_object", "403", http_status_code=403)
    assert not store().exists("code/a/h")


def test_a_store_that_fails_does_not_say_that_a_blob_is_missing(stub: Stubber) -> None:
    stub.add_client_error("head_object", "500", http_status_code=500)
    with pytest.raises(ClientError):
        store().exists("code/a/h")


def listing(*keys: str) -> dict[str, Any]:
    return {"Contents": [{"Key": key} for key in keys], "IsTruncated": False}


def deletion(*keys: str) -> dict[str, Any]:
    return {"Bucket": "bucket", "Delete": {"Objects": [{"Key": key} for key in keys], "Quiet": True}}


def test_blobs_that_were_not_deleted_are_deleted_again(stub: Stubber, no_waiting: list[float]) -> None:
    errors = [{"Key": "r/2", "Code": "SlowDown"}]
    stub.add_response("list_objects_v2", listing("r/1", "r/2"), {"Bucket": "bucket", "Prefix": "r/"})
    stub.add_response("delete_objects", {"Errors": errors}, deletion("r/1", "r/2"))
    stub.add_response("delete_objects", {}, deletion("r/2"))
    store().delete("r/")
    assert len(no_waiting) == 1


def test_a_blob_that_is_never_deleted_is_a_retryable_error(stub: Stubber, no_waiting: list[float]) -> None:
    stub.add_response("list_objects_v2", listing("r/1"))
    for _ in range(ATTEMPTS):
        stub.add_response("delete_objects", {"Errors": [{"Key": "r/1", "Code": "InternalError"}]})
    with pytest.raises(Unavailable):
        store().delete("r/")
    assert no_waiting


def test_an_empty_folder_costs_one_call(stub: Stubber) -> None:
    stub.add_response("list_objects_v2", {"IsTruncated": False})
    store().delete("r/")


def test_one_blob_costs_one_call(stub: Stubber) -> None:
    stub.add_response("delete_object", {}, {"Bucket": "bucket", "Key": "data/a/b"})
    store().delete("data/a/b")
