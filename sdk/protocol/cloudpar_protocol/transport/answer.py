"""Reads one answer of HTTP/1.1."""

import socket
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from httptools import HttpParserError, HttpResponseParser

_LINE_BYTES = _CHUNKS_BYTES = 1 << 16
"""The most bytes of a line of the head, or of a chunked body, that are read at a time."""


class Answer(NamedTuple):
    """An answer. The names of its headers are in lower case."""

    status: int
    body: bytes
    headers: Mapping[bytes, bytes] = MappingProxyType({})

    def header(self, name: str) -> str:
        """Return the value of a header; "" if there is none."""
        return self.headers.get(name.encode(), b"").decode("latin-1")


def read(connection: socket.socket) -> tuple[Answer, bool]:
    """Read one answer; return it, and whether the connection may serve another request.

    Raises:
        OSError: The connection ends or is silent before the whole answer has come, or the answer is not HTTP.
    """
    parser = _Parser()
    with connection.makefile("rb") as stream:
        while not parser.has_head:
            parser.feed(stream.readline(_LINE_BYTES))
        if parser.is_whole or b"transfer-encoding" in parser.headers:
            while not parser.is_whole:
                parser.feed(stream.read1(_CHUNKS_BYTES))
            body = b"".join(parser.parts)
        else:
            # The parser does not get the body: allocating memory for its copies of a large body takes longer than the
            # transfer.
            length = int(parser.headers.get(b"content-length", b"-1"))  # -1: the body ends with the connection
            body = stream.read(length)
            if len(body) < length:
                parser.feed(b"")
    parser.end()
    return Answer(parser.status, body, parser.headers), parser.keeps


class _Parser:
    """Parses the head of an answer, and a chunked body. httptools calls the methods `on_...`."""

    def __init__(self) -> None:
        self._parser: Any = HttpResponseParser(self)
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.parts: list[bytes] = []
        self.has_head = self.is_whole = self.keeps = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        self.status, self.keeps = self._parser.get_status_code(), self._parser.should_keep_alive()
        self.has_head = self.status >= 200  # 100 (Continue) and the like come before the answer

    def on_body(self, part: bytes) -> None:
        self.parts.append(part)

    def on_message_complete(self) -> None:
        self.is_whole = self.has_head
        if not self.has_head:
            self.headers.clear()

    def end(self) -> None:
        """Drop httptools' parser.

        The parser and this object refer to each other. Without this call, only the garbage collector would free them.
        """
        self._parser = None

    def feed(self, part: bytes) -> None:
        """Parse more bytes.

        Raises:
            ConnectionResetError: The part is empty, which means that the connection has ended.
            ConnectionError: The bytes are not HTTP.
        """
        if not part:
            raise ConnectionResetError("the connection ended before its answer")
        try:
            self._parser.feed_data(part)
        except HttpParserError as error:
            raise ConnectionError(f"the server's answer is not HTTP: {error}") from None
