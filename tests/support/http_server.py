"""An HTTP server on a free port of this machine, whose answers a function gives."""

import contextlib
import socket
import threading
from collections.abc import Callable, Mapping
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self


class Request(NamedTuple):
    """What a client has sent, and its connection."""

    method: str
    path: str
    headers: Message
    body: bytes
    connection: socket.socket

    def gone(self) -> bool:
        """Return whether the client has closed the connection."""
        self.connection.setblocking(False)
        try:
            return not self.connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        finally:
            self.connection.setblocking(True)


class Answer(NamedTuple):
    """The server adds the length of the body, and the date unless it is given."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}


class HttpServer:
    """Serves from now on until `close`, each connection in a thread of its own.

    Args:
        answer: Answers a request. None closes the connection without an answer.
    """

    def __init__(self, answer: Callable[[Request], Answer | None]) -> None:
        class Handler(_Handler):
            def answer(self, request: Request) -> Answer | None:
                return answer(request)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Serve no further connection."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self, request: Request) -> Answer | None:
        raise NotImplementedError

    def log_message(self, *_: Any) -> None:
        """Print nothing: the tests' output is for failures."""

    def handle(self) -> None:
        with contextlib.suppress(OSError):  # the client may have closed the connection
            super().handle()

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        answer = self.answer(Request(self.command, self.path, self.headers, body, self.connection))
        if answer is None:
            self.close_connection = True
            return
        self.send_response_only(answer.status)
        for name, value in {"Date": self.date_time_string(), **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    do_GET = do_POST = do_PUT = _serve  # noqa: N815 - the library calls these names
