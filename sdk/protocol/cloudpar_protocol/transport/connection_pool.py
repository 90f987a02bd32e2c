"""Sends requests over HTTP/1.1 on connections that stay open, in a fraction of the time of a general HTTP client.

It supports only what calls and payloads need: bodies whose length is known, and no redirections, proxies or cookies.
"""

import contextlib
import socket
import ssl
from collections.abc import Callable, Iterable, Mapping
from socket import create_connection
from types import MappingProxyType
from typing import Final
from urllib.parse import SplitResult, urlsplit
from weakref import WeakKeyDictionary

from cloudpar_protocol import codec

from .answer import Answer, read
from .interruption import Interruption
from .socket_pool import SocketPool, Timeouts

PIECE_BYTES: Final = 1 << 16
"""The size of the pieces in which a body is sent, in bytes. The time limit of a socket then applies to each piece."""

_NONE: Final[Mapping[str, str]] = MappingProxyType({})

_CHALLENGE: Final = {"Content-Type": codec.MSGPACK, "Accept": codec.MSGPACK}

Ask = Callable[[str, bytes], Answer]
"""Posts a body to a path of the server at the other end of one connection, without a token, and returns the answer."""

Introduce = Callable[[Ask], str]
"""Checks which server is at the other end of a new connection, before any request is sent on it. Returns the value of
the header `Authorization` for the requests on this connection; "" if they need no such header."""


class ConnectionPool(SocketPool):
    """The connections to one address. Safe for use by any thread.

    Args:
        endpoint: A URL. `post` puts the path of this URL before its own path; `request` does not.
        headers: The headers to send with each request.
        introduce: Called first on each new connection. The request that needs the connection raises the errors of this
            call.

    Raises:
        ValueError: The endpoint is not a URL, or a header has characters that no header may have.
    """

    def __init__(self, endpoint: str, headers: Mapping[str, str] = _NONE, introduce: Introduce | None = None) -> None:
        super().__init__()
        url = split(endpoint)
        tls = url.scheme == "https"
        self._address = url.hostname or "", url.port or (443 if tls else 80)
        self._tls = ssl.create_default_context() if tls else None
        self._prefix = url.path.rstrip("/")
        self._host = {"Host": url.netloc}
        self._head = _lines({**self._host, **headers})
        self._introduce = introduce
        self._authorizations: WeakKeyDictionary[socket.socket, str] = WeakKeyDictionary()
        """The header line of each connection on which `introduce` has succeeded."""

    def post(self, path: str, body: bytes, timeouts: Timeouts, interruption: Interruption | None = None) -> Answer:
        """Send a message by POST to a path below the endpoint, as `request` does. Raises like `request`."""
        length = {"Content-Length": str(len(body))}
        return self.request("POST", self._prefix + path, [body], timeouts, headers=length, interruption=interruption)

    def request(
        self,
        method: str,
        target: str,
        body: Iterable[bytes | memoryview],
        timeouts: Timeouts,
        *,
        headers: Mapping[str, str] = _NONE,
        interruption: Interruption | None = None,
    ) -> Answer:
        """Send one request and wait for its answer.

        Args:
            method: The HTTP method, such as "GET".
            target: The path and the query.
            body: The pieces of the body; `headers` must contain its length.
            timeouts: The time limits for connecting, for each piece of the body, and for each part of the answer.
            headers: The headers to send in addition to those of all requests.
            interruption: Lets another thread end the request.

        Raises:
            OSError: There is no complete answer. The server may still have carried out the request.
            RequestError: `introduce` raised it, so the request was not sent.
            ValueError: The target or a header has a line break, or a character that is not allowed.
        """
        interruption = interruption or Interruption()
        start = f"{method} {one_line(target)} HTTP/1.1\r\n{self._head}{_lines(headers)}"
        connection = self._take(timeouts.connect_s)
        try:
            interruption.watch(connection)
            connection.settimeout(timeouts.answer_s)
            head = f"{start}{self._authorization(connection)}\r\n".encode("latin-1")
            try:
                _send(connection, head, body)
                sent = True
            except (BrokenPipeError, ConnectionResetError):
                # A store that refuses a payload may answer, and close the connection, before it has received the whole
                # payload.
                if self._closed or interruption.done:
                    raise
                sent = False
            answer, keeps = read(connection)
            interruption.watch(None)
        except BaseException:
            connection.close()
            raise
        self._put_back(connection, keep=keeps and sent)
        return answer

    def _authorization(self, connection: socket.socket) -> str:
        """Return the header line for requests on a connection. On a new connection, let the server prove who it is."""
        if self._introduce is None:
            return ""
        if connection not in self._authorizations:
            value = self._introduce(lambda path, body: self._challenge(connection, path, body))
            self._authorizations[connection] = _lines({"Authorization": value}) if value else ""
        return self._authorizations[connection]

    def _challenge(self, connection: socket.socket, path: str, body: bytes) -> Answer:
        lines = _lines({**self._host, **_CHALLENGE, "Content-Length": str(len(body))})
        _send(connection, f"POST {one_line(path)} HTTP/1.1\r\n{lines}\r\n".encode("latin-1"), [body])
        answer, keeps = read(connection)
        if not keeps and answer.status == 200:
            raise ConnectionResetError("the server proved itself and closed the connection at once")
        return answer

    def _connect(self, connect_s: float) -> socket.socket:
        connection = create_connection(self._address, connect_s)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_hostname=self._address[0])
        except BaseException:
            connection.close()
            raise
        return connection


def split(endpoint: str) -> SplitResult:
    """Split a master's URL.

    Raises:
        ValueError: The endpoint is not a URL of HTTP or HTTPS.
    """
    with contextlib.suppress(ValueError):  # raised for a bad port or unbalanced brackets
        url = urlsplit(endpoint)
        if url.scheme in {"http", "https"} and url.hostname and url.port != 0:
            return url
    raise ValueError(
        f"{endpoint!r} is not a URL of a master: it starts with http:// or https:// and a host, as in "
        "http://127.0.0.1:8000"
    )


def _lines(headers: Mapping[str, str]) -> str:
    return "".join(f"{name}: {one_line(value)}\r\n" for name, value in headers.items())


def one_line(value: str) -> str:
    """Check the value of a header, and return it.

    Raises:
        ValueError: The value has a line break, or a character that no header may have.
    """
    if not value.isprintable() or max(value, default="") > "\xff":
        raise ValueError("a token or an endpoint has a line break or a character that is not allowed: copy it again")
    return value


def _send(connection: socket.socket, head: bytes, body: Iterable[bytes | memoryview]) -> None:
    for part in body:
        view = memoryview(part)
        for start in range(0, len(view), PIECE_BYTES):
            piece = view[start : start + PIECE_BYTES]
            connection.sendall(head + piece if head else piece)  # a small request needs one call
            head = b""
    if head:
        connection.sendall(head)
