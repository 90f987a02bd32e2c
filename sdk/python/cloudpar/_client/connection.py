"""Requests to the master, and to the places that it sends us to; repeated until they succeed or cannot."""

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
"""No answer for this long (beyond the time that a request asks to be held) counts as none."""

NAMELESS = {routes.HELLO.name, routes.LIST_PACKAGES.name, routes.LIST_ACCOUNTS.name}
"""They ask for nothing by its name: what is not found there is the master itself."""

log = logging.getLogger("cloudpar")


class Aborted(Exception):
    """This side has closed the connection on purpose."""


class Interrupted(Exception):
    """This side has interrupted one request on purpose."""


class Peer(NamedTuple):
    """An address that requests go to, and its recent history.

    Attributes:
        kind: "master" or "blob store".
        address: The address as it is contacted, for messages.
        policy: Of the master or of this store alone: a store that is away must not pass for a master that is.
    """

    kind: str
    address: str
    policy: RetryPolicy


class Connection:
    """One master as seen by one client; good for many threads.

    Args:
        endpoint: The master's URL.
        token: Of the account.
        policy: How long failures are waited out.
        folder: Where the master keeps payloads, if the pool has started it for itself.

    Raises:
        ConfigurationError: The endpoint is no URL, or the token has characters that none has.
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
        """Send a message until it is answered. It is the same message each time, so repeating it is harmless.

        Args:
            route: Which call.
            message: Its request.
            hold_s: How long the master may take on purpose.
            allowance_s: How long to try, instead of the usual patience.
            interruption: By which another thread may end the call.

        Raises:
            RequestError: The master refused.
            Interrupted: By the interruption.
            MasterUnreachable: It did not answer for longer than the patience.
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
        """Upload a payload, or a part, to where the master said; its ETag. Putting the same again is harmless."""
        return self._transfer(link, lambda timeout_s: self._links.put(link, body, size, timeout_s))

    def complete(self, link: Link, body: bytes) -> None:
        """Make one payload of parts. Doing it again is harmless, though a store may say that it knows no such parts."""
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
        """Raise if another attempt is of no use."""
        if self._closed.is_set():
            raise Aborted from error
        if isinstance(error, RequestError) and not error.retryable:
            raise _refused(peer, error) from None
        if self.folder is not None and isinstance(error, OSError) and error.errno in NO_ROOM:
            # Only a write of this process can say so, and repeating it makes no room.
            raise folder_unwritable(self.folder, error.errno) from error

    def _given_up(self, peer: Peer, reason: Exception, waited_s: float) -> Exception:
        if self.folder is not None and isinstance(reason, Unavailable):
            return folder_unwritable(self.folder, errno.ENOSPC)  # for so long, a full disk is the only reason
        return _unreachable(peer, reason, waited_s)

    def _wait_as_asked(self, peer: Peer, attempts: Attempts, error: RateLimited) -> None:
        """However long: the master is there, and there will be room."""
        now = time.monotonic()
        delay_s = attempts.paced(now, error.retry_after_s)
        if peer.policy.paced(attempts.paced_since, now):
            waited_s = now - attempts.paced_since
            log.warning("cloudpar: the %s has had a request wait for %.0f s: %s", peer.kind, waited_s, _brief(error))
        if self._closed.wait(delay_s):
            raise Aborted from error

    def close(self) -> None:
        """End whatever is under way, in any thread, with Aborted."""
        self._closed.set()
        self._lines.close()
        self._links.close()


def _is_ours(peer: Peer, error: RateLimited) -> bool:
    """Whether it is the master, or what stands before it, that asks to wait; else it may be anybody."""
    return peer.policy.met or error.retry_after_s is not None


def _refused(peer: Peer, error: RequestError) -> Exception:
    if type(error) is RequestError and not peer.policy.met:  # somebody answers, but it is no master
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
    mend = (
        f"waited {waited_s:.0f} s for it (patience_s={peer.policy.patience_s:g})"
        if peer.policy.met
        else "check the endpoint, and that its master runs (on one machine: `cloudpar up`)"
    )
    return MasterUnreachable(f"no {peer.kind} answers at {peer.address}: {_brief(reason)}; {mend}")


def _error(route: Route[RequestT, ReplyT], body: bytes, status: int) -> RequestError:
    error = codec.decode_error(body, status)
    if isinstance(error, NotFound) and route.name in NAMELESS:  # somebody else's page: no use in asking again
        return RequestError(str(error))
    return error


def _brief(reason: Exception) -> str:
    return str(reason) or type(reason).__name__
