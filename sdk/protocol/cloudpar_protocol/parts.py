"""The parts of a large payload: their bounds, their checksums, and the list with which S3 combines them.

The parts follow S3's multipart uploads, so the list has S3's format. `transport.parted_upload` uploads the parts.
"""

import re
from binascii import b2a_base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from zlib import crc32

from .limits import PART_BYTES, WHOLE_BYTES

_STATUS: Mapping[bytes, int] = {
    b"PreconditionFailed": 412, b"ConditionalRequestConflict": 409,
    b"InternalError": 500, b"SlowDown": 503, b"ServiceUnavailable": 503,
}  # fmt: skip


def bounds(size: int) -> list[tuple[int, int]]:
    """Return the start and end of each part of a payload of this size.

    >>> bounds(40_000_000)
    [(0, 16777216), (16777216, 33554432), (33554432, 40000000)]
    """
    return [(start, min(start + PART_BYTES, size)) for start in range(0, size, PART_BYTES)]


NOT_CHECKED = 0
"""Takes the place of a CRC-32 if the payload is written to a payload folder, where no network can damage it."""


def checksums(size: int, read: Callable[[int, int], bytes | memoryview]) -> tuple[int, list[int]]:
    """Return the CRC-32 of a payload, and a list of the CRC-32 of each part.

    The list is empty if the payload has at most WHOLE_BYTES. `read` returns bytes [start, end) of the payload.
    """
    if size <= WHOLE_BYTES:
        return crc32(read(0, size)), []
    whole, parts = 0, []
    for start, end in bounds(size):
        part = read(start, end)
        whole = crc32(part, whole)
        parts.append(crc32(part))
    return whole, parts


def completion(etags: Sequence[str], crc32s: Sequence[int]) -> bytes:
    """Return S3's list of an upload's parts, as XML."""
    return b"".join(_lines(etags, crc32s))


def _lines(etags: Sequence[str], crc32s: Sequence[int]) -> Iterator[bytes]:
    yield b'<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
    for number, (etag, checksum) in enumerate(zip(etags, crc32s, strict=True), start=1):
        text = etag.replace("&", "&amp;").replace("<", "&lt;")
        encoded = b2a_base64(checksum.to_bytes(4), newline=False).decode()
        yield f"<Part><PartNumber>{number}</PartNumber><ETag>{text}</ETag>".encode()
        yield f"<ChecksumCRC32>{encoded}</ChecksumCRC32></Part>".encode()
    yield b"</CompleteMultipartUpload>"


def completion_status(status: int, body: bytes) -> int:
    """Return the status of S3's answer to a list of parts.

    S3 may send status 200 first, and then an error in the body. An error with an unknown code counts as status 400.

    >>> completion_status(200, b"<CompleteMultipartUploadResult>"), completion_status(404, b"")
    (200, 404)
    >>> completion_status(200, b"  <Error><Code>InternalError</Code>")
    500
    """
    if status != 200:
        return status
    error = re.search(rb"<Error>.*?<Code>(\w+)</Code>", body, re.DOTALL)
    return 200 if error is None else _STATUS.get(error[1], 400)
