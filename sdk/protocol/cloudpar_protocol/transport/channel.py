"""Sends requests to one master and to the blob stores that it names. Makes only one attempt of each request."""

import contextlib
import io
import string
import threading
from collections.abc import Iterable, Sequence
from functools import partial
from typing import IO, TypeVar
from urllib.parse import quote, urlsplit

from msgspec import Struct

from cloudpar_protocol import codec
from cloudpar_protocol.errors import BadRequest, InvalidToken, RequestError, Unavailable
from cloudpar_protocol.link_urls import FILES, HEADER, RELATIVE, address, resolve
from cloudpar_protocol.parts import completion_status
from cloudpar_protocol.payloads import Link
from cloudpar_protocol.routes import Route

from .answer import Answer
from .connection_pool import PIECE_BYTES, ConnectionPool
from .identity import MasterIdentity
from .interruption import Interruption
from .local_pool import LocalPool, NoSocketYet
from .payload_folder import Draft, PayloadFolder
from .socket_pool import Timeouts

RequestT = TypeVar("RequestT", bound=Struct)
ReplyT = TypeVar("ReplyT", bound=Struct)

Body = Sequence[bytes | memoryview] | IO[bytes]
"""A payload: its pieces in memory, or a file."""

THERE_ALREADY = 412
"""S3's status for a second upload of a key. It means success: a key always names the same payload."""

STILL_WRITTEN = b"ConditionalRequestConflict"
"""S3's error code, with status 409, if an earlier upload of the same key is still being written."""


class Channel:
    """Sends requests to one master, and payloads to and from blob stores. Safe for use by any thread.

    Over plain HTTP, each new connection to the master's address starts with a challenge (see `proofs`). So a foreign
    process that has taken the address gets neither the token nor a payload nor a signed link.

    Every request raises an OSError if there is no answer, and a RequestError if it is refused. The RequestError's
    `retryable` says whether the same request may succeed later.

    Args:
        endpoint: The master's URL.
        token: An account's token, the worker token or the admin token.
        folder: The payload folder of a master that the pool started; None: links to files are refused.

    Raises:
        ValueError: The endpoint is not a URL, or the token has characters that a token cannot have, or its checksum
            does not match.
    """

    def __init__(self, endpoint: str, token: str, folder: PayloadFolder | None = None) -> None:
        self.endpoint = endpoint
        self.folder = folder
        headers = {
            "Content-Type": codec.MSGPACK,
            "Accept": codec.MSGPACK,
            HEADER: RELATIVE if folder is None else FILES,
        }
        self._identity = MasterIdentity(endpoint, token)
        self._master = ConnectionPool(endpoint, headers, self._identity.show)
        self._local = None if folder is None else LocalPool(folder, token)
        self._own_address = address(endpoint)
        self._stores: dict[str, ConnectionPool] = {}
        self._lock = threading.Lock()
        self._closed = False

    def call(
        self,
        route: Route[RequestT, ReplyT],
        body: bytes,
        timeouts: Timeouts,
        interruption: Interruption | None = None,
    ) -> ReplyT:
        """Send an encoded message, and return the reply.

        If no reply comes, the master may still have carried out the request. A reply that is not valid raises a
        RequestError, too.
        """
        answer = self._post(route.path, body, timeouts, interruption)
        if answer.status != 200:
            raise codec.decode_error(answer.body, answer.status)
        return codec.decode(answer.body, route.reply)

    def _post(self, path: str, body: bytes, timeouts: Timeouts, interruption: Interruption | None) -> Answer:
        if self._local is not None:
            with contextlib.suppress(NoSocketYet):
                return self._local.post(path, body, timeouts, interruption)
        answer = self._master.post(path, body, timeouts, interruption)
        if answer.status == InvalidToken.status and self._identity.is_proved:
            # Behind a proxy that keeps connections, the master may have restarted since it proved itself.
            self._master.drop_idle()
            answer = self._master.post(path, body, timeouts, interruption)
        return answer

    def address(self, link: Link) -> str:
        """Return the scheme, host and port that a link leads to. Error messages show them."""
        return address(resolve(link.url, self.endpoint))

    def put(self, link: Link, body: Body, timeouts: Timeouts) -> str:
        """Upload a payload, or a part of one. Returns its ETag; "" if the store sends none."""
        if PayloadFolder.has(link.url):
            if isinstance(body, Draft):
                self._own_folder().publish(link.url, body)
            else:
                self._own_folder().put(link.url, _pieces(body))
            return ""
        headers = {"Content-Length": str(_size(body))}
        answer = self._ask(link, headers, _pieces(body), timeouts)
        if not 200 <= answer.status < 300 and answer.status != THERE_ALREADY:
            raise _refusal(answer.status, answer)
        return answer.header("etag")

    def complete(self, link: Link, body: bytes, timeouts: Timeouts) -> None:
        """Combine uploaded parts into one payload."""
        headers = {"Content-Type": "application/xml", "Content-Length": str(len(body))}
        answer = self._ask(link, headers, [body], timeouts)
        status = completion_status(answer.status, answer.body)
        if status not in {200, THERE_ALREADY}:
            raise _refusal(status, answer)

    def get(self, link: Link, start: int, end: int, timeouts: Timeouts) -> bytes | bytearray:
        """Download bytes [start, end) of a payload; fewer if it ends before `end`. A file is read into a bytearray."""
        if PayloadFolder.has(link.url):
            return self._own_folder().get(link.url, start, end)
        answer = self._ask(link, {"Range": f"bytes={start}-{end - 1}"}, (), timeouts)
        if answer.status not in {200, 206}:
            raise _refusal(answer.status, answer)
        if answer.status == 200:  # the store ignored the range and sent the whole payload
            return answer.body[start:end]
        return answer.body

    def view(self, link: Link, start: int, end: int, timeouts: Timeouts) -> memoryview:
        """Read like `get`. If the link is to a file, map a large range into memory instead of copying it."""
        if PayloadFolder.has(link.url):
            return self._own_folder().view(link.url, start, end)
        return memoryview(self.get(link, start, end, timeouts))

    def open(self, link: Link) -> io.FileIO | None:
        """Open the file of a link to a file; return None for any other link."""
        return self._own_folder().open(link.url) if PayloadFolder.has(link.url) else None

    def _own_folder(self) -> PayloadFolder:
        if self.folder is None:
            raise BadRequest("the master links to a file, and it is not this pool's own: the link is not followed")
        return self.folder

    def _ask(
        self, link: Link, headers: dict[str, str], body: Iterable[bytes | memoryview], timeouts: Timeouts
    ) -> Answer:
        url = urlsplit(resolve(link.url, self.endpoint))
        target = quote((url.path or "/") + (f"?{url.query}" if url.query else ""), safe=string.punctuation)
        # If the store compressed its answer, the bytes would not be those of the requested range.
        headers = {"Accept-Encoding": "identity", **link.headers, **headers}
        return self._store(self.address(link)).request(link.method, target, body, timeouts, headers=headers)

    def _store(self, address: str) -> ConnectionPool:
        with self._lock:
            if self._closed:
                raise ConnectionAbortedError("this side closes its connections")
            if address not in self._stores:
                # The links of an embedded master lead to its own address, and stay valid after a restart. So another
                # process that has taken the address must not get them.
                introduce = self._identity.verify if address == self._own_address else None
                try:
                    self._stores[address] = ConnectionPool(address, introduce=introduce)
                except ValueError:
                    raise BadRequest(f"the master links to {address}, and no blob store is there") from None
            return self._stores[address]

    def hang_up(self) -> None:
        """Send no more calls, and show this to the master. Answers to earlier calls can still be read."""
        self._master.hang_up()
        if self._local is not None:
            self._local.hang_up()

    def close(self) -> None:
        """End all requests, in any thread, with an OSError. Later requests raise an OSError, too."""
        with self._lock:
            self._closed = True
        for pool in (self._master, *self._stores.values()):
            pool.close()
        if self._local is not None:
            self._local.close()


def _pieces(body: Body) -> Iterable[bytes | memoryview]:
    if isinstance(body, Sequence):
        return body
    body.seek(0)
    return iter(partial(body.read, PIECE_BYTES), b"")


def _size(body: Body) -> int:
    return sum(map(len, body)) if isinstance(body, Sequence) else body.seek(0, io.SEEK_END)


def _refusal(status: int, answer: Answer) -> RequestError:
    passing = status in {408, 429} or status >= 500 or STILL_WRITTEN in answer.body
    kind = Unavailable if passing else RequestError
    asked = answer.header("retry-after")
    text = codec.explain(answer.body, status, answer.header("content-type"))
    return kind(text, float(asked) if asked.isdecimal() else None)
