"""HTTP/1.1 calls over connections that are kept open. A call takes a tenth of the time of a general client's.

This supports only what calls need: POST, a body, and answers of known length. The links of payloads may lead to any
store, so they need a general client.
"""

import contextlib
import select
import socket
import ssl
from collections.abc import Mapping
from socket import create_connection
from threading import Lock
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit
from weakref import WeakSet

from httptools import HttpParserError, HttpResponseParser

KEPT = 8
"""The most idle connections; further ones are closed after use."""

READ_BYTES = 1 << 18


class Answer(NamedTuple):
    """An HTTP answer."""

    status: int
    body: bytes


class Interruption:
    """Lets another thread end one request, whether it is under way or not sent yet.

    Attributes:
        done: Whether `interrupt` was called. The request then raises an OSError, unless it already has its answer.
    """

    def __init__(self) -> None:
        self.done = False
        self._line: socket.socket | None = None
        self._lock = Lock()

    def interrupt(self) -> None:
        """Make the request raise an OSError."""
        with self._lock:
            self.done = True
            if self._line is not None:
                _shut(self._line, socket.SHUT_RDWR)

    def watch(self, line: socket.socket | None) -> None:
        """Name the connection that the request uses now; None: the request no longer uses it.

        Raises:
            ConnectionAbortedError: The request is already interrupted.
        """
        with self._lock:
            if self.done and line is not None:
                raise ConnectionAbortedError("the request was interrupted")
            self._line = line


class Lines:
    """The connections to one endpoint. Safe for use by any thread."""

    def __init__(self, endpoint: str, headers: Mapping[str, str]) -> None:
        url = _split(endpoint)
        tls = url.scheme == "https"
        self._address = url.hostname or "", url.port or (443 if tls else 80)
        self._tls = ssl.create_default_context() if tls else None
        self._prefix = url.path.rstrip("/")
        self._head = "".join(
            f"{name}: {_one_line(value)}\r\n" for name, value in {"Host": url.netloc, **headers}.items()
        )
        self._lock = Lock()
        self._idle: list[socket.socket] = []
        self._all: WeakSet[socket.socket] = WeakSet()
        self._closed = False

    def post(
        self, path: str, body: bytes, *, connect_s: float, answer_s: float, interruption: Interruption | None = None
    ) -> Answer:
        """Send one request and wait for its answer. Each read or write may take `answer_s`.

        Raises:
            OSError: There is no complete answer. The server may still have carried out the request.
        """
        interruption = interruption or Interruption()
        line = self._take(connect_s)
        try:
            interruption.watch(line)
            line.settimeout(answer_s)
            head = f"POST {self._prefix}{path} HTTP/1.1\r\n{self._head}Content-Length: {len(body)}\r\n\r\n"
            line.sendall(head.encode("latin-1") + body)
            answer, keep = _read(line)
            interruption.watch(None)
        except BaseException:
            line.close()
            raise
        self._put_back(line, keep=keep)
        return answer

    def _take(self, connect_s: float) -> socket.socket:
        while True:
            with self._lock:
                line = self._idle.pop() if self._idle else None
            if line is None:
                return self._connect(connect_s)
            if not _has_something(line):
                return line
            line.close()  # readable while idle: the server has closed it

    def _connect(self, connect_s: float) -> socket.socket:
        line = create_connection(self._address, connect_s)
        try:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                line = self._shake_hands(self._tls, line)
            self._note(line)
        except BaseException:
            line.close()
            raise
        return line

    def _shake_hands(self, tls: ssl.SSLContext, bare: socket.socket) -> ssl.SSLSocket:
        line = tls.wrap_socket(bare, server_hostname=self._address[0], do_handshake_on_connect=False)
        try:
            line.do_handshake()
        except BaseException:
            line.close()
            raise
        return line

    def _note(self, line: socket.socket) -> None:
        with self._lock:
            if self._closed:
                raise ConnectionAbortedError("this side closes its connections")
            self._all.add(line)

    def _put_back(self, line: socket.socket, *, keep: bool) -> None:
        with self._lock:
            if keep and not self._closed and len(self._idle) < KEPT:
                self._idle.append(line)
                return
        line.close()

    def hang_up(self) -> None:
        """Stop sending, and tell the server so; answers to earlier requests can still be read.

        Requests that are not sent yet, and all later ones, raise an OSError.
        """
        self._end(socket.SHUT_WR)

    def close(self) -> None:
        """End all requests, in any thread, with an OSError; later ones raise it too."""
        self._end(socket.SHUT_RDWR)

    def _end(self, how: int) -> None:
        with self._lock:
            self._closed = True  # `_note` closes a connection that is being opened now
            idle, self._idle = self._idle, []
            lines = list(self._all)
        for line in lines:
            _shut(line, how)
        for line in idle:
            line.close()


def _shut(line: socket.socket, how: int) -> None:
    with contextlib.suppress(OSError):
        socket.socket.shutdown(line, how)  # the plain socket's shutdown also for TLS: it interrupts a thread that reads


def _split(endpoint: str) -> SplitResult:
    with contextlib.suppress(ValueError):  # raised for a bad port or unbalanced brackets
        url = urlsplit(endpoint)
        if url.scheme in {"http", "https"} and url.hostname and url.port != 0:
            return url
    raise ValueError(
        f"{endpoint!r} is no URL of a master: it starts with http:// or https:// and a host, as in "
        "http://127.0.0.1:8000"
    )


def _one_line(value: str) -> str:
    if not value.isprintable() or max(value, default="") > "\xff":
        raise ValueError("a token or an endpoint has a line break or a character that is not allowed: copy it again")
    return value


def _has_something(line: socket.socket) -> bool:
    poll = select.poll()
    poll.register(line, select.POLLIN)
    return bool(poll.poll(0))


class _Reader:
    """Reads one answer. Its parser calls the methods `on_...`."""

    def __init__(self) -> None:
        self._parser: Any = HttpResponseParser(self)
        self._parts: list[bytes] = []
        self.answer: Answer | None = None
        self.keep = False

    def on_body(self, part: bytes) -> None:
        self._parts.append(part)

    def on_message_complete(self) -> None:
        self.answer = Answer(self._parser.get_status_code(), b"".join(self._parts))
        self.keep = self._parser.should_keep_alive()  # known only at the end of the message

    def feed(self, part: bytes) -> None:
        """Parse more bytes."""
        if not part:
            raise ConnectionResetError("the connection ended before its answer")
        try:
            self._parser.feed_data(part)
        except HttpParserError as error:
            raise ConnectionError(f"the server's answer is not HTTP: {error}") from None


def _read(line: socket.socket) -> tuple[Answer, bool]:
    """Read one answer; also return whether the connection may be kept."""
    reader = _Reader()
    while reader.answer is None:
        reader.feed(line.recv(READ_BYTES))
    return reader.answer, reader.keep
