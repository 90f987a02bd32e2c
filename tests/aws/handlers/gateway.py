"""An HTTP API in front of functions with a reserved concurrency of 1: each runs one call at a time."""

import threading
from collections import Counter
from collections.abc import Mapping
from itertools import count
from types import ModuleType
from typing import Any, Self

from cloudpar_protocol import routes
from support.http_server import Answer, HttpServer, Request

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
        self._server = HttpServer(self._serve)
        self.endpoint = self._server.endpoint
        self._over = threading.Event()
        self._timer = threading.Thread(target=self._keep_time)

    def _keep_time(self) -> None:
        while not self._over.wait(0.1):
            self.timer.invoke({})

    def _serve(self, request: Request) -> Answer:
        function = self.worker if request.path in WORKERS else self.client
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        answer = function.invoke(event(request.path, request.body, token, media=request.headers["Content-Type"]))
        if answer is None:
            status, text = REFUSALS[next(self._order) % len(REFUSALS)]
            self.refusals[status] += 1
            return Answer(status, text, {"Content-Type": "application/json"})
        return Answer(answer["statusCode"], body_of(answer), {"Content-Type": answer["headers"]["content-type"]})

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.close()
        self._timer.join()
