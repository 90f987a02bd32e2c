"""Requests to the master, and to the places that it sends us to; repeated until they succeed or cannot."""

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable
from typing import IO, Any, TypeVar, cast
from weakref import WeakSet

import urllib3
from msgspec import Struct
from urllib3.exceptions import HTTPError

from cloudpar_protocol import codec
from cloudpar_protocol.payloads import Link
from cloudpar_protocol.routes import Route

from .errors import InternalError, MasterUnreachable, RequestError, Unavailable
from .patience import Patience, Tries

RequestT = TypeVar("RequestT", bound=Struct)
ReplyT = TypeVar("ReplyT", bound=Struct)
T = TypeVar("T")

CONNECT_S = 10.0

ANSWER_S = 30.0
"""No answer for this long (beyond the time that a request asks to be held) counts as none."""

log = logging.getLogger("cloudpar")


class Aborted(Exception):
    """This side has closed the connection on purpose."""


class Connection:
    """One master as seen by one client; good for many threads."""

    def __init__(self, endpoint: str, token: str, patience: Patience) -> None:
        self.endpoint = endpoint
        self.patience = patience
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": codec.MSGPACK,
            "Accept": codec.MSGPACK,
        }
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._closed = threading.Event()
        self._http = urllib3.PoolManager(num_pools=16, maxsize=8, blocksize=1 << 20, retries=False)
        self._http.pool_classes_by_scheme = {
            "http": _tracking(urllib3.HTTPConnectionPool, self._sockets),
            "https": _tracking(urllib3.HTTPSConnectionPool, self._sockets),
        }

    def call(
        self,
        route: Route[RequestT, ReplyT],
        message: RequestT,
        *,
        hold_s: float = 0.0,
        allowance_s: float | None = None,
    ) -> ReplyT:
        """Send a message until it is answered. It is the same message each time, so repeating it is harmless.

        Args:
            route: Which call.
            message: Its request.
            hold_s: How long the master may take on purpose.
            allowance_s: How long to try, instead of the usual patience.

        Raises:
            RequestError: The master refused.
            MasterUnreachable: It did not answer for longer than the patience.
        """
        body = codec.encode(message)
        url = self.endpoint + route.path

        def once(timeout: urllib3.Timeout) -> ReplyT:
            response = self._http.request("POST", url, body=body, headers=self._headers, timeout=timeout)
            if response.status != 200:
                raise _error(response.data, response.status)
            return codec.decode(response.data, route.reply)

        return self._persist(once, ANSWER_S + hold_s, allowance_s)

    def put(self, link: Link, body: memoryview | IO[bytes], size: int) -> None:
        """Upload a payload to where the master said. Putting the same payload again is harmless."""

        def once(timeout: urllib3.Timeout) -> None:
            if not isinstance(body, memoryview):
                body.seek(0)
            headers = {**link.headers, "Content-Length": str(size)}
            response = self._http.request(
                link.method, link.url, body=cast("Any", body), headers=headers, timeout=timeout
            )
            if not 200 <= response.status < 300:
                raise _blob_error(response.data, response.status, "upload")

        self._persist(once, ANSWER_S)

    def get(self, link: Link, start: int, end: int) -> bytes:
        """Download bytes [start, end) of a payload."""

        def once(timeout: urllib3.Timeout) -> bytes:
            headers = {**link.headers, "Range": f"bytes={start}-{end - 1}"}
            response = self._http.request(link.method, link.url, headers=headers, timeout=timeout)
            if response.status not in {200, 206}:
                raise _blob_error(response.data, response.status, "download")
            data = response.data
            if response.status == 200:  # a store that ignores ranges sends the whole
                data = data[start:end]
            if len(data) != end - start:
                raise Unavailable(f"a download of {end - start} bytes brought {len(data)}")
            return data

        return self._persist(once, ANSWER_S)

    def _persist(self, once: Callable[[urllib3.Timeout], T], answer_s: float, allowance_s: float | None = None) -> T:
        tries = Tries(self.patience, answer_s, allowance_s, time.monotonic())
        while True:
            timeout_s = tries.timeout_s(time.monotonic())
            try:
                answer = once(urllib3.Timeout(connect=min(CONNECT_S, timeout_s), read=timeout_s))
            except (HTTPError, OSError, RequestError) as error:
                if self._closed.is_set():
                    raise Aborted from error
                if isinstance(error, RequestError) and not error.retryable:
                    raise self._refused(error) from None
                reason = error
            else:
                self._answered()
                return answer
            now = time.monotonic()
            delay_s = tries.failed(now, getattr(reason, "retry_after_s", None))
            if delay_s is None:
                raise self._unreachable(reason, now - tries.began) from reason
            if self.patience.failed(now):
                log.warning(
                    "cloudpar: the master at %s does not answer (%s); waiting for it up to %.0f s",
                    self.endpoint, _brief(reason), tries.allowance_s,
                )  # fmt: skip
            if self._closed.wait(delay_s):
                raise Aborted from reason

    def _refused(self, error: RequestError) -> Exception:
        if type(error) is RequestError and not self.patience.met:  # somebody answers, but it is no master
            return self._unreachable(error, 0.0)
        self._answered()
        return error

    def _answered(self) -> None:
        away_s = self.patience.answered(time.monotonic())
        if away_s is not None:
            log.warning("cloudpar: the master at %s is back after %.0f s", self.endpoint, away_s)

    def _unreachable(self, reason: Exception, waited_s: float) -> Exception:
        if isinstance(reason, RequestError) and self.patience.met:
            return reason
        mend = (
            f"waited {waited_s:.0f} s for it (patience_s={self.patience.patience_s:g})"
            if self.patience.met
            else "check the endpoint, and that its master runs (on one machine: `cloudpar up`)"
        )
        return MasterUnreachable(f"no master answers at {self.endpoint}: {_brief(reason)}; {mend}")

    def close(self) -> None:
        """End whatever is under way, in any thread, with Aborted."""
        self._closed.set()
        for each in list(self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._http.clear()


def _tracking(kind: type[Any], sockets: WeakSet[socket.socket]) -> type[Any]:
    """A pool class whose connections note their sockets: a request held for 20 s must be able to end at once."""

    class TrackedConnection(kind.ConnectionCls):  # type: ignore[misc,name-defined]
        def connect(self) -> None:
            super().connect()
            sockets.add(self.sock)

    return type("TrackedPool", (kind,), {"ConnectionCls": TrackedConnection})


def _error(body: bytes, status: int) -> RequestError:
    error = codec.decode_error(body, status)
    if isinstance(error, InternalError) and status < 500:  # somebody else's page: no use in asking again
        return RequestError(str(error))
    return error


def _blob_error(body: bytes, status: int, what: str) -> RequestError:
    kind = Unavailable if status in {408, 429} or status >= 500 else RequestError
    return kind(
        f"the {what} of a payload was answered with HTTP status {status}: {body[:200].decode(errors='replace')}"
    )


def _brief(reason: Exception) -> str:
    text = str(reason)
    for wordy, plain in (
        ("Failed to establish a new connection: ", ""),
        ("NameResolutionError", "unknown host"),
    ):
        text = text.replace(wordy, plain)
    return text.rsplit("object at 0x", 1)[-1].partition(">: ")[2] or text
