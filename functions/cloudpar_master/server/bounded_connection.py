"""A connection that reads one request at a time, and bounds the bytes that it keeps in memory."""

import asyncio
from enum import Enum, auto
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .answer_writer import AnswerWriter
from .deadline import Deadline

HEAD_BYTES: Final = 64 * 1024
"""The most bytes of a request's head. The same limit holds for what comes between two parts of the body or after the
body, such as the sizes of HTTP chunks, and trailers. Beyond this limit the server answers 400. It checks the limit
after each read, so somewhat more bytes may have arrived by then."""

FIELDS: Final = 100
"""The most fields in the head and the trailers of a request together. Beyond that the server answers 400, because in
memory a field takes many times its length."""

HEAD_S: Final = 20.0
"""The first head on a connection must arrive within this many seconds after the connection was opened, and each later
head within this many seconds after its first byte. Otherwise the server closes the connection."""

STALL_S: Final = 60.0
"""Once in this many seconds, the server checks whether more of a body has arrived, or whether the client has read more
of an answer. If not, the server closes the connection. So a connection stalls for at most twice this time."""


class _Part(Enum):
    """The part of a request to which the next bytes belong."""

    NONE = auto()
    HEAD = auto()
    BODY = auto()


class BoundedConnection(HttpToolsProtocol):
    """A connection that reads one request at a time, limits its head, and closes if its body or its answer stalls.

    uvicorn and its parser call these methods. If a method that the parser calls raises an error, the parser stops, and
    uvicorn calls `send_400_response`.
    """

    def __init__(self, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self._keep_field = super().on_header
        self._part = _Part.HEAD
        self._fields = 0
        self._overhead_bytes = 0
        self._body_came = self._progressed = False
        self._refused = False
        self._unsent_bytes = 0
        self._reading = Deadline(self.loop)
        self._writing = Deadline(self.loop)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first head."""
        super().connection_made(transport)
        # The application writes no more while anything is unsent: otherwise a client that reads nothing of many large
        # answers would fill the memory.
        transport.set_write_buffer_limits(high=0)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        self._reading.clear()
        self._writing.clear()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse data. Refuse a request if its head, or the framing of its body, is too long."""
        if self._refused:
            self.flow.pause_reading()  # pause again: the application's `receive` has resumed reading
            return
        if self._part is _Part.NONE and not self._in_work:
            # Do this also if the data is only line breaks, which the parser skips: any data stops the timer by which
            # uvicorn closes idle connections.
            self._expect_head()
        self._body_came = False
        super().data_received(data)
        self._overhead_bytes = 0 if self._body_came else self._overhead_bytes + len(data)
        if self._part is _Part.NONE or self._refused:
            return
        if self._overhead_bytes > HEAD_BYTES:
            self.send_400_response(f"more than {HEAD_BYTES:,} bytes of a head, of sizes of chunks or of trailers")
        elif self._part is _Part.BODY and not self._reading.is_set:
            self._expect_body()

    # called by the parser

    def on_message_begin(self) -> None:
        """Expect the rest of a request's head.

        Raises:
            RuntimeError: The earlier request is not answered yet. Without this error, the parser would parse all
                requests that have arrived: one read may contain thousands of them.
        """
        if self._in_work:
            raise RuntimeError("a request has come before the answer to the one before it")
        super().on_message_begin()
        self._fields = 0
        if self._part is not _Part.HEAD:
            self._expect_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a field of a head. Drop a trailer, because no request needs one.

        Raises:
            ValueError: There are too many fields.
        """
        self._fields += 1
        if self._fields > FIELDS:
            raise ValueError(f"over {FIELDS} fields")
        if self._part is _Part.HEAD:
            self._keep_field(name, value)

    def on_headers_complete(self) -> None:
        """Pass the request to the application."""
        super().on_headers_complete()  # raises an error if the URL is malformed: then there is no request
        self._reading.clear()
        self._part = _Part.BODY
        self.cycle.transport = AnswerWriter(self.cycle)  # type: ignore[assignment]  # it has all that the cycle calls

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body. Read the next part only when the application calls `receive`."""
        self._body_came = self._progressed = True
        super().on_body(body)
        if self._in_work:
            self.flow.pause_reading()

    def on_message_complete(self) -> None:
        """Expect no more of this request."""
        self._reading.clear()
        self._part = _Part.NONE
        super().on_message_complete()
        if not self._in_work:  # the answer came before the body, whose bytes have stopped uvicorn's idle timer
            self._reading.set(self.timeout_keep_alive, self.transport.close)

    def send_400_response(self, msg: str) -> None:
        """Stop reading, because the arrived data cannot or must not be parsed, and close the connection.

        If the application works on an earlier request, the connection closes after the answer to that request.
        Otherwise the server answers the refused request with status 400, unless its answer has started.
        """
        self._refused = True
        self._reading.clear()
        if self._in_work and self._part is not _Part.BODY:
            self.cycle.keep_alive = False
            self.flow.pause_reading()
        elif self._part is _Part.BODY and self.cycle.response_started:
            self.transport.close()
        else:
            super().send_400_response(msg)

    @property
    def _in_work(self) -> bool:
        """Whether a request is not answered yet."""
        return not getattr(self.cycle, "response_complete", True)  # before the first request, `cycle` is None

    # timers

    def _expect_head(self) -> None:
        self._part, self._overhead_bytes = _Part.HEAD, 0
        self._reading.set(HEAD_S, self.transport.abort)

    def _expect_body(self) -> None:
        self._progressed = False
        self._reading.set(STALL_S, self._check_body)

    def _check_body(self) -> None:
        # While the application does not call `receive`, reading is paused. Then the client is not the slow side.
        if self._progressed or self.flow.read_paused:
            self._expect_body()
        else:
            self.transport.abort()

    def pause_writing(self) -> None:
        """Make the application wait until the client has read what was sent."""
        super().pause_writing()
        self._expect_reader()

    def resume_writing(self) -> None:
        """Let the application send more: the client has read what was sent."""
        self._writing.clear()
        super().resume_writing()

    def _expect_reader(self) -> None:
        self._unsent_bytes = self.transport.get_write_buffer_size()
        self._writing.set(STALL_S, self._check_reader)

    def _check_reader(self) -> None:
        if self.transport.get_write_buffer_size() < self._unsent_bytes:
            self._expect_reader()
        else:
            self.transport.abort()
