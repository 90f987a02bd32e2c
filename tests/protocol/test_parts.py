"""The parts of a large payload, their checksums, and S3's list of them."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudpar_protocol.limits import PART_BYTES, WHOLE_BYTES
from cloudpar_protocol.parts import bounds, checksums, completion, completion_status


@given(st.integers(1, 2**40))
def test_the_parts_cover_the_whole_payload(size: int) -> None:
    size = size % (100 * PART_BYTES) + 1
    cut = bounds(size)
    assert [start for start, _ in cut] == [0, *(end for _, end in cut[:-1])]
    assert (cut[-1][1], len(cut)) == (size, -(-size // PART_BYTES))
    assert all(end - start == PART_BYTES for start, end in cut[:-1])


def test_a_payload_in_one_piece_has_only_one_checksum() -> None:
    body = bytes(WHOLE_BYTES)
    assert checksums(len(body), lambda start, end: body[start:end]) == (zlib.crc32(body), [])
    assert checksums(0, lambda start, end: b""[start:end]) == (0, [])


def test_a_payload_in_parts_has_a_checksum_for_each() -> None:
    body = bytes(range(256)) * (WHOLE_BYTES // 256) + b"more"
    whole, parts = checksums(len(body), lambda start, end: body[start:end])
    assert whole == zlib.crc32(body)
    assert parts == [zlib.crc32(body[start:end]) for start, end in bounds(len(body))]


def test_the_list_of_parts_has_s3s_form() -> None:
    assert completion(['"a<b&c"'], [zlib.crc32(b"abc")]) == (
        b'<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        b'<Part><PartNumber>1</PartNumber><ETag>"a&lt;b&amp;c"</ETag><ChecksumCRC32>NSRBwg==</ChecksumCRC32></Part>'
        b"</CompleteMultipartUpload>"
    )


@pytest.mark.parametrize(
    ("code", "status"),
    [("PreconditionFailed", 412), ("ConditionalRequestConflict", 409), ("InternalError", 500), ("BadDigest", 400)],
)
def test_an_error_may_come_with_status_200(code: str, status: int) -> None:
    body = f'\n\n<?xml version="1.0"?>\n<Error>\n  <Code>{code}</Code><Message>m</Message></Error>'.encode()
    assert completion_status(200, body) == status
    assert completion_status(403, body) == 403
