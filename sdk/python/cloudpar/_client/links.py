"""Payload requests by presigned links, to any store: by a general HTTP client that is imported at the first link."""

import contextlib
import socket
from typing import IO, TYPE_CHECKING, Any, cast
from weakref import WeakSet

from cloudpar.errors import BadRequest, RequestError, Unavailable
from cloudpar_protocol import codec
from cloudpar_protocol.link_urls import resolve
from cloudpar_protocol.parts import PIECE_BYTES, completion_status, pieces
from cloudpar_protocol.payload_folder import Draft, PayloadFolder
from cloudpar_protocol.payloads import Link

if TYPE_CHECKING:
    import urllib3

CONNECT_S = 10.0

THERE_ALREADY = 412
"""S3's status for a second upload of a key. It means success: a key always names the same payload."""

STILL_WRITTEN = b"ConditionalRequestConflict"
"""S3's error code, with status 409, while an earlier upload of the same key is still being written."""


class Links:
    """One client's connections to blob stores. Relative links lead to the master. Safe for use by any thread.

    Args:
        endpoint: The master's URL.
        folder: The payload folder of a master that the pool started; None: links to files are refused.
    """

    def __init__(self, endpoint: str, folder: PayloadFolder | None = None) -> None:
        self._endpoint = endpoint
        self._folder = folder
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._manager: urllib3.PoolManager | None = None
        self._closed = False

    def url(self, link: Link) -> str:
        """Return the absolute URL of a link."""
        return resolve(link.url, self._endpoint)

    def put(self, link: Link, body: memoryview | IO[bytes], size: int, timeout_s: float) -> str:
        """Upload a payload or a part, once; returns the ETag if the store sends one.

        If the store already has the payload, from an earlier try or an identical upload, this succeeds.

        Raises:
            OSError: The store does not answer.
            RequestError: The store refused.
        """
        if not isinstance(body, memoryview):
            body.seek(0)
        if PayloadFolder.has(link.url):
            if isinstance(body, Draft):
                self._files().publish(link.url, body)
            else:
                self._files().put(link.url, [body] if isinstance(body, memoryview) else body)
            return ""
        headers = {"Content-Length": str(size)}
        answer = self._ask(link, headers, pieces(body) if isinstance(body, memoryview) else body, timeout_s)
        if not 200 <= answer.status < 300 and answer.status != THERE_ALREADY:
            raise _refusal(answer.status, answer, "upload")
        return answer.headers.get("ETag", "")

    def complete(self, link: Link, body: bytes, timeout_s: float) -> None:
        """Combine the parts of a payload, once; raises like `put`."""
        answer = self._ask(link, {"Content-Type": "application/xml"}, body, timeout_s)
        status = completion_status(answer.status, answer.data)
        if status not in {200, THERE_ALREADY}:
            raise _refusal(status, answer, "upload")

    def get(self, link: Link, start: int, end: int, timeout_s: float) -> bytes:
        """Download bytes [start, end) of a payload, once; raises like `put`."""
        if PayloadFolder.has(link.url):
            return _whole(self._files().get(link.url, start, end), end - start)
        answer = self._ask(link, {"Range": f"bytes={start}-{end - 1}"}, None, timeout_s)
        if answer.status not in {200, 206}:
            raise _refusal(answer.status, answer, "download")
        data = answer.data
        if answer.status == 200:  # the store ignored the range and sent the whole payload
            data = data[start:end]
        return _whole(data, end - start)

    def _files(self) -> PayloadFolder:
        if self._folder is None:
            raise BadRequest("the master links to a file, and it is not this pool's own: the link is not followed")
        return self._folder

    def _ask(
        self, link: Link, headers: dict[str, str], body: list[memoryview] | IO[bytes] | bytes | None, timeout_s: float
    ) -> "urllib3.BaseHTTPResponse":
        from urllib3 import Timeout
        from urllib3.exceptions import HTTPError

        if self._closed:
            raise ConnectionAbortedError("this side closes its connections")
        self._manager = self._manager or _manager(self._sockets)
        timeout = Timeout(connect=min(CONNECT_S, timeout_s), read=timeout_s)
        try:
            return self._manager.request(
                link.method,
                self.url(link),
                body=cast("Any", body),
                headers={**link.headers, **headers},
                timeout=timeout,
            )
        except HTTPError as error:
            raise ConnectionError(str(error)) from error

    def close(self) -> None:
        """End all requests, in any thread, with an OSError."""
        self._closed = True
        for each in list(self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        if self._manager is not None:
            self._manager.clear()


def _manager(sockets: WeakSet[socket.socket]) -> "urllib3.PoolManager":
    import urllib3

    manager = urllib3.PoolManager(num_pools=16, maxsize=8, blocksize=PIECE_BYTES, retries=False)
    manager.pool_classes_by_scheme = {
        "http": _tracking(urllib3.HTTPConnectionPool, sockets),
        "https": _tracking(urllib3.HTTPSConnectionPool, sockets),
    }
    return manager


def _tracking(kind: type[Any], sockets: WeakSet[socket.socket]) -> type[Any]:
    """A pool class that records the sockets of its connections, so that `close` can end them at once."""

    class TrackedConnection(kind.ConnectionCls):  # type: ignore[misc,name-defined]
        def connect(self) -> None:
            super().connect()
            sockets.add(self.sock)

    return type("TrackedPool", (kind,), {"ConnectionCls": TrackedConnection})


def _whole(data: bytes, size: int) -> bytes:
    if len(data) != size:
        raise Unavailable(f"a download of {size} bytes brought {len(data)}")
    return data


def _refusal(status: int, answer: "urllib3.BaseHTTPResponse", what: str) -> RequestError:
    passing = status in {408, 429} or status >= 500 or STILL_WRITTEN in answer.data
    kind = Unavailable if passing else RequestError
    asked = answer.headers.get("Retry-After", "")
    text = codec.explain(answer.data, status, answer.headers.get("Content-Type", ""))
    return kind(f"the {what} of a payload was refused: {text}", float(asked) if asked.isdecimal() else None)
