"""An HTTP API in front of functions with a reserved concurrency of 1: each runs one call at a time."""

import threading
from collections import Counter
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from types import ModuleType, TracebackType
from typing import Any, Self

from cloudpar_protocol import routes

from .calls import body_of, event
from .conftest import Context

WORKERS = {route.path for route in routes.ROUTES if route.role == "worker"}

REFUSALS = [(503, b'{"message":"Service Unavailable"}'), (429, b'{"message":"Too Many Requests"}')]
"""What an HTTP API answers when Lambda throttles a function, and when the API itself throttles."""


class Function:
    """One function with one environment; a call during another call is throttled."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._environment = threading.Lock()
        self.answered = 0
        self.throttled = 0

    def invoke(self, event: Mapping[str, Any]) -> Any:
        """Return the handler's answer, or None if the call is throttled."""
        if not self._environment.acquire(blocking=False):
            self.throttled += 1
            return None
        try:
            self.answered += 1
            return self._module.handle(event, Context())
        finally:
            self._environment.release()


class Gateway:
    """An endpoint for real clients and workers, and the timer's schedule."""

    def __init__(self, client: ModuleType, worker: ModuleType, timer: ModuleType) -> None:
        self.client, self.worker, self.timer = Function(client), Function(worker), Function(timer)
        self.refusals: Counter[int] = Counter()
        self._order = count()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.gateway = self
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._server.serve_forever, args=(0.01,)),
            threading.Thread(target=self._keep_time),
        ]

    def _keep_time(self) -> None:
        while not self._over.wait(0.1):
            self.timer.invoke({})

    def serve(self, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, str, bytes]:
        function = self.worker if path in WORKERS else self.client
        token = headers["authorization"].removeprefix("Bearer ")
        answer = function.invoke(event(path, body, token, media=headers["content-type"]))
        if answer is None:
            status, text = REFUSALS[next(self._order) % len(REFUSALS)]
            self.refusals[status] += 1
            return status, "application/json", text
        return answer["statusCode"], answer["headers"]["content-type"], body_of(answer)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        for thread in self._threads:
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    gateway: Gateway


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        status, media, answer = self.server.gateway.serve(self.path, headers, body)
        self.send_response(status)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
