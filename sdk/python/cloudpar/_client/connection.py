"""Requests to the master and to the blob stores that it names.

The client repeats a request until it succeeds, until the server refuses it with an error that no repetition can change,
or until the time for the request is over.
"""

import threading
from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from cloudpar.errors import ConfigurationError, NotFound, RequestError, Unavailable
from cloudpar_protocol import codec, routes
from cloudpar_protocol.payloads import Link
from cloudpar_protocol.routes import Route
from cloudpar_protocol.transport.channel import Body, Channel
from cloudpar_protocol.transport.interruption import Interruption
from cloudpar_protocol.transport.payload_folder import PayloadFolder
from cloudpar_protocol.transport.retries import retry
from cloudpar_protocol.transport.socket_pool import Timeouts

from .retry_policy import RetryPolicy
from .waiting import Peer, Waiting

RequestT = TypeVar("RequestT", bound=Struct)
ReplyT = TypeVar("ReplyT", bound=Struct)
T = TypeVar("T")

ANSWER_S = 30.0
"""How long to wait for an answer, in seconds, in addition to the time for which the master may hold the request."""

WITHOUT_NAMES = {routes.HELLO.name, routes.LIST_PACKAGES.name, routes.LIST_ACCOUNTS.name}
"""Routes that name no package or account. A 404 from one of them means that no master answers at this address."""


class Interrupted(Exception):
    """Another thread of this process has ended a request by its `Interruption`."""


class Connection:
    """One client's connection to its master. Any thread may use it. After `close`, requests raise `Stopped`.

    Args:
        endpoint: The master's URL.
        token: The account's token.
        policy: How long the client repeats failed requests.
        folder: The payload folder of the pool's own master; None for other masters.

    Raises:
        ConfigurationError: The endpoint is not a URL, or the token has characters that a token cannot have.
    """

    def __init__(self, endpoint: str, token: str, policy: RetryPolicy, folder: PayloadFolder | None = None) -> None:
        self.endpoint = endpoint
        self.policy = policy
        self.folder = folder
        try:
            self._channel = Channel(endpoint, token, folder)
        except ValueError as error:
            raise ConfigurationError(str(error)) from None
        self._master = Peer("master", endpoint, policy)
        self._peers: dict[str, Peer] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()

    def call(
        self,
        route: Route[RequestT, ReplyT],
        message: RequestT,
        *,
        hold_s: float = 0.0,
        allowance_s: float | None = None,
        interruption: Interruption | None = None,
    ) -> ReplyT:
        """Send a message and return the reply. Repeat the same message until the master replies or refuses.

        The master may receive and carry out a request several times, because an answer may be lost.

        Args:
            route: The kind of request.
            message: The request.
            hold_s: How long the master may hold the request, in seconds.
            allowance_s: How long to try, in seconds. None means as long as `policy` says, and without a limit while the
                master answers that the client must wait (RateLimited).
            interruption: Lets another thread end the call.

        Raises:
            RequestError: The master refused the request, or could not serve it within the time.
            Interrupted: Another thread has ended the call by the interruption.
            MasterUnreachable: No answer came within the time, or another program answers at the endpoint.
            FolderUnwritable: The pool's own master, or this process, cannot write the payload folder, most likely
                because the disk is full.
            Stopped: The connection is closed.
        """
        body = codec.encode(message)
        waiting = Waiting(self._master, self.folder, ANSWER_S + hold_s, allowance_s)

        def once() -> ReplyT:
            try:
                return self._channel.call(route, body, waiting.timeouts(), interruption)
            except OSError as error:
                if interruption is not None and interruption.done:
                    raise Interrupted from error
                raise
            except NotFound as error:
                if route.name in WITHOUT_NAMES:  # another web server answers; `Waiting` recognizes it by a RequestError
                    raise RequestError(str(error)) from None
                raise

        reply = retry(once, waiting.failed, self._closed)
        waiting.answered()
        return reply

    def put(self, link: Link, body: Body) -> str:
        """Upload a payload or a part of it; return the ETag, or "" if the store sends none. Raises like `call`.

        If no answer comes, the client repeats the upload, as it repeats a message.
        """
        return self._transfer("upload", link, lambda timeouts: self._channel.put(link, body, timeouts))

    def complete(self, link: Link, body: bytes) -> None:
        """Combine the uploaded parts of a payload. Raises like `call`.

        If the store's answer is lost, the client repeats the request. The store may have combined the parts already,
        and then refuses the repeated request, because it no longer knows the parts.
        """
        self._transfer("upload", link, lambda timeouts: self._channel.complete(link, body, timeouts))

    def get(self, link: Link, start: int, end: int) -> bytes | bytearray:
        """Download bytes [start, end) of a payload. Raises like `call`.

        If an answer has fewer bytes, the client repeats the request.
        """

        def once(timeouts: Timeouts) -> bytes | bytearray:
            data = self._channel.get(link, start, end, timeouts)
            if len(data) != end - start:
                raise Unavailable(f"a download of {end - start} bytes brought {len(data)}")
            return data

        return self._transfer("download", link, once)

    def _transfer(self, what: str, link: Link, once: Callable[[Timeouts], T]) -> T:
        where = self._channel.address(link)
        with self._lock:
            known = RetryPolicy(self.policy.patience_s, met=True)
            store = self._peers.setdefault(where, Peer("blob store", where, known))
        waiting = Waiting(store, self.folder, ANSWER_S, None)

        def named() -> T:
            try:
                return once(waiting.timeouts())
            except RequestError as error:
                raise type(error)(f"the {what} of a payload was refused: {error}", error.retry_after_s) from None

        answer = retry(named, waiting.failed, self._closed)
        waiting.answered()
        return answer

    def close(self) -> None:
        """End all requests in any thread; they raise Stopped."""
        self._closed.set()
        self._channel.close()
