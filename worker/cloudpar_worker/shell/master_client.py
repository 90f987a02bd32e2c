"""Calls to the master over HTTP, retried until they are answered, and payload transfers by presigned links."""

import random
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import urllib3
from msgspec import Struct
from msgspec.structs import replace

from cloudpar_protocol import codec, routes
from cloudpar_protocol.errors import RequestError
from cloudpar_protocol.limits import HOLD_S
from cloudpar_protocol.line import Lines
from cloudpar_protocol.link_urls import FILES, HEADER, RELATIVE, address, resolve
from cloudpar_protocol.parts import completion_status, pieces
from cloudpar_protocol.payload_folder import PayloadFolder
from cloudpar_protocol.payloads import Link, Unwritable
from cloudpar_protocol.routes import Route
from cloudpar_protocol.worker_messages import RetrieveTasks

from .reach import Reach

RequestT = TypeVar("RequestT", bound=Struct)
ReplyT = TypeVar("ReplyT", bound=Struct)
T = TypeVar("T")
Report = Callable[[Unwritable], None]

_FIRST_DELAY_S, _LAST_DELAY_S = 0.05, 2.0
"""The delays between attempts double from the first to the last."""
_CONNECT_S, _ANSWER_S = 5.0, 60.0
"""How long one attempt waits for a connection, and for an answer."""
_THERE_ALREADY, _STILL_WRITTEN = 412, b"ConditionalRequestConflict"
"""S3's answers to the second upload of a key: after the first has ended, and (with status 409) while it is under
way."""


class PayloadRefused(Exception):
    """A payload cannot be transferred by its link: the link has expired, or the object is gone."""


class Stopped(Exception):
    """The agent does not want the answer any more."""


class MasterClient:
    """A client of one master. Several threads may use it; each request takes a connection from a pool.

    Args:
        endpoint: The master's URL.
        token: The worker token.
        reach: Records which requests fail and which succeed.
        folder: The master's payload folder, if one pool has started both; None: links to files are refused.
    """

    def __init__(self, endpoint: str, token: str, reach: Reach, folder: PayloadFolder | None = None) -> None:
        self._endpoint = endpoint
        self._folder = folder
        self._reach = reach
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": codec.MSGPACK,
            "Accept": codec.MSGPACK,
            HEADER: RELATIVE if folder is None else FILES,
        }
        self._master = f"the master at {endpoint}"
        self._lines = Lines(endpoint, headers)
        self._stores = urllib3.PoolManager(num_pools=8, maxsize=4, retries=False)
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Make no further attempt."""
        self._stopped.set()

    def hang_up(self) -> None:
        """Close held requests, so that the master does not hand chunks to them; an answer under way is still read."""
        self._stopped.set()
        self._lines.hang_up()

    def call(
        self, route: Route[RequestT, ReplyT], request: RequestT, *, repeat: bool = True, answer_s: float = _ANSWER_S
    ) -> ReplyT:
        """Call the master and return its answer, repeating the request while it fails with an error that may pass.

        The delays between attempts grow. A repeated retrieval says so (`again`).

        Raises:
            RequestError: The master refused for good.
            Stopped: `stop` was called, or a call with `repeat=False` got no answer.
        """
        body = codec.encode(request)
        delay_s = _FIRST_DELAY_S
        while not self._stopped.is_set():
            reply, asked_s = self._ask(route, body, answer_s)
            if reply is not None:
                if repeat:
                    self._reach.succeeded()
                return reply
            if not repeat or self._stopped.is_set():
                break
            self._reach.repeats()
            if isinstance(
                request, RetrieveTasks
            ):  # the lost answer may have contained chunks, which the master then hands out again
                body = codec.encode(replace(request, again=True))
            self._stopped.wait(max(asked_s or 0.0, delay_s) * random.uniform(1.0, 1.25))  # noqa: S311 - jitter
            delay_s = min(delay_s * 2, _LAST_DELAY_S)
        raise Stopped

    def _ask(self, route: Route[RequestT, ReplyT], body: bytes, answer_s: float) -> tuple[ReplyT | None, float | None]:
        """Make one attempt; without a final answer, return None and the delay that the master asks for."""
        answer_s += HOLD_S if route is routes.RETRIEVE_TASKS else 0.0
        connect_s = min(_CONNECT_S, answer_s)
        try:
            answer = self._lines.post(route.path, body, connect_s=connect_s, answer_s=answer_s)
        except OSError as error:
            if not self._stopped.is_set():
                self._reach.failed(self._master, error)
            return None, None
        self._reach.answered(self._master)
        if answer.status == 200:
            return codec.decode(answer.body, route.reply), None
        refusal = codec.decode_error(answer.body, answer.status)
        if not refusal.retryable:
            raise refusal
        if not self._stopped.is_set():
            self._reach.refused(self._master, f"{refusal} ({refusal.code})")
        return None, refusal.retry_after_s

    @property
    def own_folder(self) -> bool:
        """Whether payloads are files in a folder that this worker shares with its pool's own master."""
        return self._folder is not None

    def download(self, link: Link, start: int, end: int) -> bytes | memoryview:
        """Download the bytes [start, end) of the object of a link.

        Raises:
            PayloadRefused: The object cannot be downloaded by this link.
            Stopped: `stop` was called.
        """
        if start == end:
            return b""
        if PayloadFolder.has(link.url):
            body: bytes | memoryview = self._in_folder(lambda folder: folder.view(link.url, start, end))
        else:
            headers = {**link.headers, "Range": f"bytes={start}-{end - 1}"}
            body = self._by_link(link, headers, None).data
        if len(body) != end - start:
            raise PayloadRefused(f"{len(body)} bytes came instead of {end - start}")
        return body

    def upload(self, link: Link, payload: Sequence[bytes | memoryview], report: Report = lambda _: None) -> str:
        """Upload a payload, given in pieces, or a part of one, and return its ETag. Raises the same as `download`.

        If the store has an object there already, an earlier attempt succeeded: a key is never used for two payloads.
        `report` is called each time that a file cannot be written.
        """
        if PayloadFolder.has(link.url):
            self._in_folder(lambda folder: folder.put(link.url, payload), report)
            return ""
        headers = {**link.headers, "Content-Length": str(sum(map(len, payload)))}
        body = [small for piece in payload for small in pieces(memoryview(piece))]
        return self._by_link(link, headers, body).headers.get("ETag", "")

    def complete(self, link: Link, body: bytes) -> None:
        """Combine uploaded parts into one object. Raises the same as `download`."""
        self._by_link(link, {**link.headers, "Content-Type": "application/xml"}, body)

    def _in_folder(self, use: Callable[[PayloadFolder], T], report: Report | None = None) -> T:
        """Read a file, or (with `report`) write one; repeat while the system fails: a full disk may have room later."""
        delay_s = _FIRST_DELAY_S
        while not self._stopped.is_set():
            try:
                if self._folder is None:
                    raise PayloadRefused("it is a link to a file, and this worker's master is not its pool's own")
                done = use(self._folder)
            except RequestError as error:
                raise PayloadRefused(str(error)) from None
            except OSError as error:
                if report is not None and self._folder is not None:
                    report(self._reach.not_written(self._folder, error))
                else:
                    self._reach.failed(f"the folder of payloads {self._folder}", error)
            else:
                self._reach.succeeded()
                return done
            self._reach.repeats()
            self._stopped.wait(delay_s)
            delay_s = min(delay_s * 2, _LAST_DELAY_S)
        raise Stopped

    def _by_link(
        self, link: Link, headers: dict[str, str], payload: list[memoryview] | bytes | None
    ) -> urllib3.BaseHTTPResponse:
        delay_s, url = _FIRST_DELAY_S, resolve(link.url, self._endpoint)
        store = f"the blob store at {address(url)}"
        while not self._stopped.is_set():
            asked_s = 0.0
            try:
                answer = self._stores.request(
                    link.method,
                    url,
                    body=cast("Any", payload),
                    headers=headers,
                    timeout=urllib3.Timeout(connect=_CONNECT_S, read=_ANSWER_S),
                )
            except (urllib3.exceptions.HTTPError, OSError) as error:
                self._reach.failed(store, error)
            else:
                self._reach.answered(store)
                status = answer.status if link.method != "POST" else completion_status(answer.status, answer.data)
                if status in {200, 201, 204, 206} or (payload is not None and status == _THERE_ALREADY):
                    self._reach.succeeded()
                    return answer
                why = codec.explain(answer.data, status, answer.headers.get("Content-Type", ""))
                if status < 500 and status not in {408, 429} and _STILL_WRITTEN not in answer.data:
                    raise PayloadRefused(why)
                self._reach.refused(store, why)
                asked_s = _retry_after_s(answer)
            self._reach.repeats()
            self._stopped.wait(max(asked_s, delay_s))
            delay_s = min(delay_s * 2, _LAST_DELAY_S)
        raise Stopped


def _retry_after_s(answer: urllib3.BaseHTTPResponse) -> float:
    asked = answer.headers.get("Retry-After", "")
    return float(asked) if asked.isdecimal() else 0.0
