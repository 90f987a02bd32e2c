"""Sends requests to the master, and transfers payloads. Repeats a request after an error that may be temporary."""

import io
import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from cloudpar_protocol import codec, routes
from cloudpar_protocol.errors import InvalidToken, RequestError
from cloudpar_protocol.limits import HOLD_S
from cloudpar_protocol.payloads import BlobRef, Link, Unwritable
from cloudpar_protocol.routes import Route
from cloudpar_protocol.transport.channel import Channel
from cloudpar_protocol.transport.payload_folder import PayloadFolder
from cloudpar_protocol.transport.retries import Backoff, Stopped, retry
from cloudpar_protocol.transport.socket_pool import Timeouts
from cloudpar_protocol.worker_messages import RetrieveTasks

from .reach import Reach

RequestT = TypeVar("RequestT", bound=Struct)
ReplyT = TypeVar("ReplyT", bound=Struct)
T = TypeVar("T")
Report = Callable[[Unwritable], None]

_FIRST_DELAY_S, _LAST_DELAY_S = 0.05, 2.0
"""The first and the longest delay between attempts, in seconds. Each delay is twice as long as the one before, up to
the longest. `Backoff` adds a random part, and the master or the blob store may require a longer delay. The longest
delay is short, because leases expire while the agent waits.
"""
_CONNECT_S, _ANSWER_S = 5.0, 60.0
"""How long one attempt waits for a connection, and for each part that it sends or receives, in seconds."""
_TRANSFER: Final = Timeouts(_CONNECT_S, _ANSWER_S)


class PayloadRefused(Exception):
    """A payload cannot be transferred, for example because its link has expired or the object is gone."""


class TokenRefused(Exception):
    """The master does not know the worker token, so no request can succeed."""


class MasterClient:
    """A client of one master and of its blob store.

    Several threads may use one client. Each request takes a connection from a pool of connections.

    Args:
        endpoint: The master's URL.
        token: The worker token.
        reach: Records which requests fail and which succeed.
        folder: The master's payload folder, if one pool has started the master and this worker. If None, links to
            files are refused.

    Raises:
        ValueError: The endpoint is not a URL, or the token has characters that a token cannot have.
    """

    def __init__(self, endpoint: str, token: str, reach: Reach, folder: PayloadFolder | None = None) -> None:
        self._reach = reach
        self._channel = Channel(endpoint, token, folder)
        self._stopped = threading.Event()

    def hang_up(self) -> None:
        """Make no further attempts. End held requests, so that the master does not hand out chunks in their answers.

        The client still reads answers that are under way.
        """
        self._stopped.set()
        self._channel.hang_up()

    def call(
        self, route: Route[RequestT, ReplyT], request: RequestT, *, repeat: bool = True, answer_s: float = _ANSWER_S
    ) -> ReplyT:
        """Call the master and return its answer. Repeat the request while it fails with an error that may be temporary.

        The delays between attempts grow. A repeated retrieval is marked as repeated (`again`).

        Args:
            route: The call.
            request: The message to send.
            repeat: If False, make only one attempt.
            answer_s: The seconds for which one attempt waits for each part of the answer; a retrieval waits HOLD_S
                longer. An attempt waits for its connection as long, but at most _CONNECT_S.

        Raises:
            RequestError: The master refused the request for good.
            TokenRefused: The master does not know the worker token.
            Stopped: `hang_up` was called, or, with `repeat=False`, the only attempt failed with an error that may be
                temporary.
        """
        answer_s += HOLD_S if route is routes.RETRIEVE_TASKS else 0.0
        timeouts = Timeouts(min(_CONNECT_S, answer_s), answer_s)
        bodies = _bodies(request)
        where = f"the master at {self._channel.endpoint}"
        return self._retry(where, lambda: self._channel.call(route, next(bodies), timeouts), repeat=repeat)

    @property
    def own_folder(self) -> bool:
        """Whether payloads are files in a folder that this worker shares with its pool's own master."""
        return self._channel.folder is not None

    def get(self, link: Link, start: int, end: int) -> bytes | memoryview:
        """Download the bytes [start, end) of a link's object.

        Raises:
            PayloadRefused: The object cannot be downloaded by this link, or is too short.
            Stopped: `hang_up` was called.
        """
        if start == end:
            return b""
        body = self._transfer(link, lambda: self._channel.view(link, start, end, _TRANSFER))
        if len(body) != end - start:
            raise PayloadRefused(f"{len(body)} bytes came instead of {end - start}")
        return body

    def open(self, link: Link, blob: BlobRef) -> io.FileIO | None:
        """Open the file of a link's object, which contains a blob; return None if the link does not lead to a file.

        Raises the same as `get`.
        """
        file = self._transfer(link, lambda: self._channel.open(link))
        if file is not None and os.fstat(file.fileno()).st_size < blob.offset + blob.size:
            file.close()
            raise PayloadRefused("its file is shorter than the payload")
        return file

    def put(self, link: Link, payload: Sequence[bytes | memoryview], report: Report = lambda _: None) -> str:
        """Upload a payload, or one part of a multipart upload. `payload` contains the bytes in pieces.

        Returns the ETag that the store sends, or "" if it sends none.

        If the link names a file, the function calls `report` each time that the file cannot be written. If `report`
        raises an exception, the upload ends with this exception.

        Raises:
            PayloadRefused: The payload cannot be uploaded by this link.
            Stopped: `hang_up` was called.
        """
        return self._transfer(link, lambda: self._channel.put(link, payload, _TRANSFER), report)

    def complete(self, link: Link, body: bytes) -> None:
        """Combine uploaded parts into one object. Raises the same as `put`."""
        self._transfer(link, lambda: self._channel.complete(link, body, _TRANSFER))

    def _transfer(self, link: Link, once: Callable[[], T], report: Report | None = None) -> T:
        """Repeat a transfer until it succeeds or is refused for good.

        It also repeats the transfer if the system cannot read or write a file, because a full disk may have space
        later.
        """
        where, missed = f"the blob store at {self._channel.address(link)}", None
        folder = self._channel.folder
        if folder is not None and PayloadFolder.has(link.url):
            where = f"the folder of payloads {folder}"
            if report is not None:
                missed = partial(self._report, folder, report)
        try:
            return self._retry(where, once, missed=missed)
        except RequestError as error:
            raise PayloadRefused(str(error)) from None

    def _report(self, folder: PayloadFolder, report: Report, error: OSError) -> None:
        report(self._reach.not_written(folder, error))

    def _retry(
        self, where: str, once: Callable[[], T], *, repeat: bool = True, missed: Callable[[OSError], None] | None = None
    ) -> T:
        """Repeat attempts, without a time limit, until one succeeds or fails with an error that is not temporary.

        `self._reach` records the end of each attempt. But if `missed` is given, the function calls `missed` for each
        OSError, and `self._reach` does not record these. The function makes no attempt after `hang_up`, and only one
        without `repeat`.
        """
        backoff = Backoff(_FIRST_DELAY_S, _LAST_DELAY_S)

        def failed(error: OSError | RequestError) -> float:
            if isinstance(error, OSError):
                (missed or partial(self._reach.failed, where))(error)
            else:
                self._reach.answered(where)
                if isinstance(error, InvalidToken):
                    raise TokenRefused(str(error)) from None
                if not error.retryable:
                    raise error
                self._reach.refused(where, f"{error} ({error.code})")
            if not repeat:
                raise Stopped from error
            self._reach.repeats()
            return backoff.next_s(getattr(error, "retry_after_s", None))

        answer = retry(once, failed, self._stopped)
        self._reach.answered(where)
        if repeat:
            self._reach.succeeded()
        return answer


def _bodies(request: Struct) -> Iterator[bytes]:
    """Yield the body of the request for each attempt.

    If the answer to a retrieval was lost, it may have contained chunks. So each repetition is marked as repeated
    (`again`), and the master answers with the same chunks.
    """
    yield codec.encode(request)
    again = replace(request, again=True) if isinstance(request, RetrieveTasks) else request
    yield from itertools.repeat(codec.encode(again))
