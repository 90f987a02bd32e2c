"""A connection to a master that loses answers: the master has carried out the request, and the client does not know."""

import http.client
import random
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

ONE_IN = 5
"""On each path, one answer is lost in this many in a row, at a random position."""


class LossyLine:
    """Passes all calls to the master and loses some answers: of some nothing arrives, of some the first half.

    Attributes:
        calls: The number of calls by path.
        lost: The number of lost answers by path.
    """

    def __init__(self, endpoint: str, seed: int) -> None:
        self.calls: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self._chosen: dict[str, int] = {}
        self._master = urlsplit(endpoint).netloc
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.line = self
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def connect(self) -> http.client.HTTPConnection:
        """Connect to the master."""
        return http.client.HTTPConnection(self._master, timeout=60)

    def passed(self, path: str, size: int) -> int:
        """Record an answered call, and return how many bytes of its answer are sent on."""
        with self._lock:
            turn = self.calls[path] % ONE_IN
            self.calls[path] += 1
            if turn == 0:
                self._chosen[path] = self._random.randrange(ONE_IN)
            if turn != self._chosen[path]:
                return size
            self.lost[path] += 1
            return self._random.choice([0, size // 2])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    line: LossyLine


class _Handler(BaseHTTPRequestHandler):
    """Serves one client's connection with one connection to the master."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def handle(self) -> None:
        self._master = self.server.line.connect()
        try:
            super().handle()
        except (OSError, http.client.HTTPException):  # one side has closed its connection, which ends this one, too
            self.close_connection = True
        finally:
            self._master.close()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name: self.headers[name] for name in ("Authorization", "Content-Type", "Accept")}
        self._master.request("POST", self.path, body, headers)
        answer = self._master.getresponse()
        content = answer.read()
        head = f"HTTP/1.1 {answer.status} OK\r\nContent-Length: {len(content)}\r\n\r\n"
        whole = head.encode() + content
        arrives = self.server.line.passed(self.path, len(whole))
        self.wfile.write(whole[:arrives])
        self.close_connection = arrives < len(whole)

    def log_message(self, *_: Any) -> None:
        pass
