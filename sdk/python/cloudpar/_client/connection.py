"""Requests to the master and to the blob stores that it names, repeated until they succeed or cannot succeed."""

import errno
import logging
import threading
import time
from collections.abc import Callable
from typing import IO, NamedTuple, TypeVar

from msgspec import Struct

from cloudpar.errors import ConfigurationError, MasterUnreachable, NotFound, RateLimited, RequestError, Unavailable
from cloudpar_protocol import codec, routes
from cloudpar_protocol.line import Interruption, Lines
from cloudpar_protocol.link_urls import FILES, HEADER, RELATIVE, address
from cloudpar_protocol.payload_folder import NO_ROOM, PayloadFolder
from cloudpar_protocol.payloads import Link
from cloudpar_protocol.routes import Route

from .links import Links
from .retry_policy import Attempts, RetryPolicy
from .storage_watch import folder_unwritable

RequestT = TypeVar("RequestT", bound=Struct)
ReplyT = TypeVar("ReplyT", bound=Struct)
T = TypeVar("T")

CONNECT_S = 10.0

ANSWER_S = 30.0
"""How long to wait for an answer, in seconds, beyond the time that the request lets the master hold it."""

NAMELESS = {routes.HELLO.name, routes.LIST_PACKAGES.name, routes.LIST_ACCOUNTS.name}
"""Routes that name no package or account: a 404 there means that no master answers at this address."""

log = logging.getLogger("cloudpar")


class Aborted(Exception):
    """This side has closed the connection."""


class Interrupted(Exception):
    """This side has interrupted one request."""


class Peer(NamedTuple):
    """An address that requests go to, and how it answered recently.

    Attributes:
        kind: "master" or "blob store".
        address: The contacted address, for messages.
        policy: Separate for the master and for each store, so that a failing store does not pass for a failing master.
    """

    kind: str
    address: str
    policy: RetryPolicy


class Connection:
    """One master as seen by one client. Safe for use by any thread.

    Args:
        endpoint: The master's URL.
        token: The account's token.
        policy: How long failed requests are repeated.
        folder: Where a master that this pool started keeps payloads; None for other masters.

    Raises:
        ConfigurationError: The endpoint is no URL, or the token has characters that no token has.
    """

    def __init__(self, endpoint: str, token: str, policy: RetryPolicy, folder: PayloadFolder | None = None) -> None:
        self.endpoint = endpoint
        self.policy = policy
        self.folder = folder
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": codec.MSGPACK,
            "Accept": codec.MSGPACK,
            HEADER: RELATIVE if folder is None else FILES,
        }
        try:
            self._lines = Lines(endpoint, headers)
        except ValueError as error:
            raise ConfigurationError(str(error)) from None
        self._links = Links(endpoint, folder)
        self._master = Peer("master", endpoint, policy)
        self._stores: dict[str, Peer] = {}
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
        """Send a message until it is answered. Each repetition is identical, so the master may see it twice.

        Args:
            route: Which call.
            message: Its request.
            hold_s: How long the master may hold the request, in seconds.
            allowance_s: How long to try, in seconds, instead of the usual patience.
            interruption: Lets another thread end the call.

        Raises:
            RequestError: The master refused.
            Interrupted: The interruption was used.
            MasterUnreachable: The master did not answer for longer than the patience.
        """
        body = codec.encode(message)

        def once(timeout_s: float) -> ReplyT:
            try:
                answer = self._lines.post(
                    route.path,
                    body,
                    connect_s=min(CONNECT_S, timeout_s),
                    answer_s=timeout_s,
                    interruption=interruption,
                )
            except OSError as error:
                if interruption is not None and interruption.done:
                    raise Interrupted from error
                raise
            if answer.status != 200:
                raise _error(route, answer.body, answer.status)
            return codec.decode(answer.body, route.reply)

        return self._persist(once, ANSWER_S + hold_s, allowance_s)

    def put(self, link: Link, body: memoryview | IO[bytes], size: int) -> str:
        """Upload a payload or a part, and return its ETag. Repeating it is harmless."""
        return self._transfer(link, lambda timeout_s: self._links.put(link, body, size, timeout_s))

    def complete(self, link: Link, body: bytes) -> None:
        """Combine the parts of a payload. When repeated, a store may answer that it does not know the parts."""
        self._transfer(link, lambda timeout_s: self._links.complete(link, body, timeout_s))

    def get(self, link: Link, start: int, end: int) -> bytes:
        """Download bytes [start, end) of a payload."""
        return self._transfer(link, lambda timeout_s: self._links.get(link, start, end, timeout_s))

    def _transfer(self, link: Link, once: Callable[[float], T]) -> T:
        where = address(self._links.url(link))
        with self._lock:
            known = RetryPolicy(self.policy.patience_s, met=True)
            store = self._stores.setdefault(where, Peer("blob store", where, known))
        return self._persist(once, ANSWER_S, peer=store)

    def _persist(
        self, once: Callable[[float], T], answer_s: float, allowance_s: float | None = None, peer: Peer | None = None
    ) -> T:
        peer = peer or self._master
        attempts = Attempts(peer.policy, answer_s, allowance_s, time.monotonic())
        while True:
            try:
                answer = once(attempts.timeout_s(time.monotonic()))
            except (OSError, RequestError) as error:
                self._raise_final(peer, error)
                reason = error
                if isinstance(error, RateLimited) and allowance_s is None and _is_ours(peer, error):
                    _answered(peer)
                    self._wait_as_asked(peer, attempts, error)
                    continue
            else:
                _answered(peer)
                return answer
            now = time.monotonic()
            delay_s = attempts.failed(now, getattr(reason, "retry_after_s", None))
            if delay_s is None:
                raise self._given_up(peer, reason, now - attempts.began) from reason
            if peer.policy.failed(now):
                what = "cannot serve requests now" if isinstance(reason, RequestError) else "does not answer"
                log.warning(
                    "cloudpar: the %s at %s %s (%s); waiting for it up to %.0f s",
                    peer.kind, peer.address, what, _brief(reason), attempts.allowance_s,
                )  # fmt: skip
            if self._closed.wait(delay_s):
                raise Aborted from reason

    def _raise_final(self, peer: Peer, error: OSError | RequestError) -> None:
        """Raise if repeating the request cannot help."""
        if self._closed.is_set():
            raise Aborted from error
        if isinstance(error, RequestError) and not error.retryable:
            raise _refused(peer, error) from None
        if self.folder is not None and isinstance(error, OSError) and error.errno in NO_ROOM:
            # This error comes from a write of this process, and repeating it does not make room.
            raise folder_unwritable(self.folder, error.errno) from error

    def _given_up(self, peer: Peer, reason: Exception, waited_s: float) -> Exception:
        if self.folder is not None and isinstance(reason, Unavailable):
            # Only a full disk makes this pool's own master unavailable for so long.
            return folder_unwritable(self.folder, errno.ENOSPC)
        return _unreachable(peer, reason, waited_s)

    def _wait_as_asked(self, peer: Peer, attempts: Attempts, error: RateLimited) -> None:
        """Wait without a limit: the master answers, and asks to wait until there is room."""
        now = time.monotonic()
        delay_s = attempts.paced(now, error.retry_after_s)
        if peer.policy.paced(attempts.paced_since, now):
            waited_s = now - attempts.paced_since
            log.warning("cloudpar: the %s has delayed a request for %.0f s: %s", peer.kind, waited_s, _brief(error))
        if self._closed.wait(delay_s):
            raise Aborted from error

    def close(self) -> None:
        """End all requests, in any thread, with Aborted."""
        self._closed.set()
        self._lines.close()
        self._links.close()


def _is_ours(peer: Peer, error: RateLimited) -> bool:
    """Whether the master, or a gateway before it, asks to wait; otherwise the answer may come from another program."""
    return peer.policy.met or error.retry_after_s is not None


def _refused(peer: Peer, error: RequestError) -> Exception:
    if type(error) is RequestError and not peer.policy.met:  # another program answers at this address
        return _unreachable(peer, error, 0.0)
    _answered(peer)
    return error


def _answered(peer: Peer) -> None:
    away_s = peer.policy.answered(time.monotonic())
    if away_s is not None:
        log.warning("cloudpar: the %s at %s is back after %.0f s", peer.kind, peer.address, away_s)


def _unreachable(peer: Peer, reason: Exception, waited_s: float) -> Exception:
    if isinstance(reason, RequestError) and peer.policy.met:
        return reason
    fix = (
        f"waited {waited_s:.0f} s for it (patience_s={peer.policy.patience_s:g})"
        if peer.policy.met
        else "check the endpoint, and that its master runs (on one machine: `cloudpar up`)"
    )
    return MasterUnreachable(f"no {peer.kind} answers at {peer.address}: {_brief(reason)}; {fix}")


def _error(route: Route[RequestT, ReplyT], body: bytes, status: int) -> RequestError:
    error = codec.decode_error(body, status)
    if isinstance(error, NotFound) and route.name in NAMELESS:  # another web server's 404: repeating does not help
        return RequestError(str(error))
    return error


def _brief(reason: Exception) -> str:
    return str(reason) or type(reason).__name__
