"""Uploads in parts, for clients and workers: order and threads are here, the caller sends the requests.

The parts and the list that combines them have S3's form.
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
"""How many parts of one upload are sent at the same time."""

PIECE_BYTES = 1 << 16

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
"""Instead of a CRC-32 for a payload that is written to the pool's own folder: no network can damage it."""


def checksums(size: int, read: Callable[[int, int], bytes | memoryview]) -> tuple[int, list[int]]:
    """CRC-32 of a payload, and of each part if it is large enough for parts. `read` returns bytes [start, end)."""
    if size <= WHOLE_BYTES:
        return crc32(read(0, size)), []
    whole, parts = 0, []
    for start, end in bounds(size):
        part = read(start, end)
        whole = crc32(part, whole)
        parts.append(crc32(part))
    return whole, parts


def pieces(body: memoryview) -> list[memoryview]:
    """Cut a body into pieces for a general HTTP client, whose time limit then applies to each piece and not to all.

    >>> [len(piece) for piece in pieces(memoryview(bytes(100_000)))]
    [65536, 34464]
    """
    return [body[start : start + PIECE_BYTES] for start in range(0, len(body), PIECE_BYTES)]


class Sender(Protocol):
    """The requests of one upload. Each repeats itself as long as that may help."""

    def put(self, link: Link, start: int, end: int) -> str:
        """Upload bytes [start, end); return the answer's ETag."""
        ...

    def complete(self, link: Link, body: bytes) -> None:
        """Combine the parts into one payload. `completion_status` interprets the answer."""
        ...

    def renew(self, upload_id: str) -> Parts | None:
        """Request new links to the same parts; None: the upload is no longer wanted."""
        ...


class PartedUpload:
    """The upload of one payload in parts.

    A link may expire while others are used. So when a link is refused, all are renewed; parts that are already uploaded
    are not sent again. If a new link is refused, the upload fails.
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
        """Upload the payload.

        Raises:
            Exception: The sender's error, if new links did not help.
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
            with suppress(RuntimeError):  # the interpreter is shutting down and starts no more threads
                thread.start()
        self._send_each(missing, errors)
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        if errors:
            raise min(errors, key=self._can_be_renewed)

    def _send_each(self, missing: deque[int], errors: list[BaseException]) -> None:
        with suppress(IndexError):
            while not errors:
                number = missing.popleft()
                try:
                    self._etags[number] = self._sender.put(self._parts.links[number], *self._bounds[number])
                except Exception as error:  # noqa: BLE001 - raised again by the thread that waits for all parts
                    errors.append(error)
                except BaseException as error:
                    errors.append(error)
                    raise

    def _can_be_renewed(self, error: BaseException) -> bool:
        return isinstance(error, Exception) and self._is_refusal(error)

    def _list(self) -> bytes:
        return completion([etag for _, etag in sorted(self._etags.items())], self._crc32s)


def completion(etags: Sequence[str], crc32s: Sequence[int]) -> bytes:
    """S3's list of an upload's parts, as XML."""
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
    """The status of an answer to `complete`. S3 may send status 200 first, and then an error in the body.

    >>> completion_status(200, b"<CompleteMultipartUploadResult>"), completion_status(404, b"")
    (200, 404)
    >>> completion_status(200, b"  <Error><Code>InternalError</Code>")
    500
    """
    if status != 200:
        return status
    error = re.search(rb"<Error>.*?<Code>(\w+)</Code>", body, re.DOTALL)
    return 200 if error is None else _STATUS.get(error[1], 400)
