"""Uploads in parts, for clients and workers: order and threads are here; the caller brings the requests.

Parts are what S3 takes, so the list that makes one payload of them is S3's.
"""

import re
import threading
from binascii import b2a_base64
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Protocol
from zlib import crc32

from .limits import PART_BYTES, WHOLE_BYTES
from .payloads import Link, Parts

THREADS = 4
"""Parts of one upload that are under way at a time."""

PIECE_BYTES = 1 << 16

_STATUS: Mapping[bytes, int] = {
    b"PreconditionFailed": 412, b"ConditionalRequestConflict": 409,
    b"InternalError": 500, b"SlowDown": 503, b"ServiceUnavailable": 503,
}  # fmt: skip


def bounds(size: int) -> list[tuple[int, int]]:
    """The parts of a payload of this size: where each starts and ends.

    >>> bounds(40_000_000)
    [(0, 16777216), (16777216, 33554432), (33554432, 40000000)]
    """
    return [(start, min(start + PART_BYTES, size)) for start in range(0, size, PART_BYTES)]


NOT_CHECKED = 0
"""The CRC-32 that is announced of a payload that becomes a file of the pool's own master: no connection damages it."""


def checksums(size: int, read: Callable[[int, int], bytes | memoryview]) -> tuple[int, list[int]]:
    """CRC-32 of a payload, and of each of its parts if it is to go in parts. `read` brings bytes [start, end)."""
    if size <= WHOLE_BYTES:
        return crc32(read(0, size)), []
    whole, parts = 0, []
    for start, end in bounds(size):
        part = read(start, end)
        whole = crc32(part, whole)
        parts.append(crc32(part))
    return whole, parts


def pieces(body: memoryview) -> list[memoryview]:
    """A body for a general HTTP client, piece by piece: its time limit then holds for each piece, not for all.

    >>> [len(piece) for piece in pieces(memoryview(bytes(100_000)))]
    [65536, 34464]
    """
    return [body[start : start + PIECE_BYTES] for start in range(0, len(body), PIECE_BYTES)]


class Sender(Protocol):
    """The requests of one upload; each is repeated by itself while that may help."""

    def put(self, link: Link, start: int, end: int) -> str:
        """Upload bytes [start, end); the answer's ETag."""
        ...

    def complete(self, link: Link, body: bytes) -> None:
        """Make one payload of the parts. `completion_status` says what the answer means."""
        ...

    def renew(self, upload_id: str) -> Parts | None:
        """Fresh links to the same parts; None: the upload is not wanted any more."""
        ...


class PartedUpload:
    """One payload on its way in parts.

    A link may grow old while others are used. So whenever one is refused, all are renewed, and what is there already is
    not sent again; one that is refused although it is fresh ends the upload.
    """

    def __init__(
        self, parts: Parts, size: int, crc32s: Sequence[int], sender: Sender, is_refusal: Callable[[Exception], bool]
    ) -> None:
        self._parts = parts
        self._bounds = bounds(size)
        self._crc32s = crc32s
        self._sender = sender
        self._is_refusal = is_refusal
        self._etags: dict[int, str] = {}

    def run(self) -> None:
        """Upload it.

        Raises:
            Exception: What the sender raised, if fresh links did not help.
        """
        there_before = -1
        while True:
            try:
                self._send_missing()
                self._sender.complete(self._parts.complete, self._list())
            except Exception as error:
                renewed = None
                if self._is_refusal(error) and len(self._etags) > there_before:
                    renewed = self._sender.renew(self._parts.upload_id)
                if renewed is None:
                    raise
                self._parts, there_before = renewed, len(self._etags)
            else:
                return

    def _send_missing(self) -> None:
        missing = deque(number for number in range(len(self._bounds)) if number not in self._etags)
        errors: list[BaseException] = []
        threads = [
            threading.Thread(target=self._send_each, args=(missing, errors), name="cloudpar-upload", daemon=True)
            for _ in range(min(THREADS, len(missing)) - 1)
        ]
        for thread in threads:
            with suppress(RuntimeError):  # the interpreter is ending, and starts no more threads
                thread.start()
        self._send_each(missing, errors)
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        if errors:
            raise min(errors, key=self._can_be_mended)

    def _send_each(self, missing: deque[int], errors: list[BaseException]) -> None:
        with suppress(IndexError):
            while not errors:
                number = missing.popleft()
                try:
                    self._etags[number] = self._sender.put(self._parts.links[number], *self._bounds[number])
                except Exception as error:  # noqa: BLE001 - raised by the thread that waits for all
                    errors.append(error)
                except BaseException as error:
                    errors.append(error)
                    raise

    def _can_be_mended(self, error: BaseException) -> bool:
        return isinstance(error, Exception) and self._is_refusal(error)

    def _list(self) -> bytes:
        return completion([etag for _, etag in sorted(self._etags.items())], self._crc32s)


def completion(etags: Sequence[str], crc32s: Sequence[int]) -> bytes:
    """S3's list of an upload's parts."""
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
    """The status of an answer to `complete`: S3 may answer 200 before it starts, and put an error into the body.

    >>> completion_status(200, b"<CompleteMultipartUploadResult>"), completion_status(404, b"")
    (200, 404)
    >>> completion_status(200, b"  <Error><Code>InternalError</Code>")
    500
    """
    if status != 200:
        return status
    error = re.search(rb"<Error>.*?<Code>(\w+)</Code>", body, re.DOTALL)
    return 200 if error is None else _STATUS.get(error[1], 400)
