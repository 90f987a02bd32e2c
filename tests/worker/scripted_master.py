"""A master for the agent's tests: it hands out the leases of the test, and records what the agent sends."""

import re
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cloudpar_protocol import codec, routes
from cloudpar_protocol.errors import InvalidToken, RequestError, Unavailable
from cloudpar_protocol.payloads import Link, TaskResult
from cloudpar_protocol.worker_messages import (
    ExtendLeasesReply,
    GiveBackReply,
    Lease,
    LeaseView,
    PreparedResult,
    PrepareResultsReply,
    Publication,
    PublishResultsReply,
    RetrieveTasksReply,
    Return,
)

TOKEN = "worker-token-for-tests"
LEASE_S = 1.5
HANG_S = 60.0
"""Only a hang takes this long."""


class ScriptedMaster:
    """Hands out leases, and records publications and give-backs; `changed` is notified of every change."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.leases: deque[Lease] = deque()
        self.views: dict[str, LeaseView] = {}
        self.hungry = False
        self.away = False
        self.refused_uploads = 0
        """How many uploads it still refuses."""
        self.refused = 0
        """How many requests came while it was away."""
        self.refuse: Callable[[str, Any], RequestError | None] = lambda _route, _request: None
        self.requests: list[tuple[float, str, Any]] = []
        self.publications: list[Publication] = []
        self.returns: list[Return] = []
        self.blobs: dict[str, bytes] = {}
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.master = self
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        with self.changed:
            self.away = True
            self.changed.notify_all()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def hand_out(self, *leases: Lease) -> None:
        with self.changed:
            self.leases.extend(leases)
            self.changed.notify_all()

    def set(self, **facts: Any) -> None:
        with self.changed:
            for name, fact in facts.items():
                setattr(self, name, fact)
            self.changed.notify_all()

    def wait(self, condition: Callable[[], bool], timeout_s: float = HANG_S) -> None:
        with self.changed:
            assert self.changed.wait_for(condition, timeout_s), (
                f"no such state; requests: {[(route, request) for _, route, request in self.requests[-20:]]}"
            )

    def results(self, package_id: str | None = None) -> dict[int, TaskResult]:
        """The first result of each task."""
        found: dict[int, TaskResult] = {}
        for publication in list(self.publications):
            if package_id in {None, publication.package_id}:
                for result in publication.results:
                    found.setdefault(result.index, result)
        return found

    def wait_for_results(
        self, count: int, package_id: str | None = None, timeout_s: float = HANG_S
    ) -> dict[int, TaskResult]:
        self.wait(lambda: len(self.results(package_id)) >= count, timeout_s)
        return self.results(package_id)

    def closed(self, lease_id: str) -> bool:
        items: list[Publication | Return] = [*self.publications, *self.returns]
        return any(item.closes and item.lease_id == lease_id for item in items)

    def answer(self, route: str, request: Any, gone: Callable[[], bool]) -> Any:
        with self.changed:
            self.requests.append((time.monotonic(), route, request))
            refusal = self.refuse(route, request)
            if refusal is not None:
                raise refusal
            reply = getattr(self, f"_{route}")(request, gone)
            self.changed.notify_all()
            return reply

    def _retrieve_tasks(self, request: Any, gone: Callable[[], bool]) -> RetrieveTasksReply:
        end = time.monotonic() + request.hold_s
        while not self.leases and not self.away and not gone() and time.monotonic() < end:
            self.changed.wait(0.02)
        if gone():
            raise Unavailable("the master is away")
        leases = [self.leases.popleft() for _ in range(min(request.chunks, len(self.leases)))]
        return RetrieveTasksReply(leases=leases)

    def _publish_results(self, request: Any, _gone: Any) -> PublishResultsReply:
        for publication in request.publications:
            known = [(old.lease_id, old.seq) for old in self.publications]
            if (publication.lease_id, publication.seq) not in known:
                self.publications.append(publication)
        ids = dict.fromkeys(publication.lease_id for publication in request.publications)
        return PublishResultsReply(leases=[self.views[i] for i in ids if i in self.views], hungry=self.hungry)

    def _extend_leases(self, request: Any, _gone: Any) -> ExtendLeasesReply:
        views = [self.views[ref.lease_id] for ref in request.leases if ref.lease_id in self.views]
        return ExtendLeasesReply(leases=views, hungry=self.hungry)

    def _give_back(self, request: Any, _gone: Any) -> GiveBackReply:
        self.returns += request.returns
        return GiveBackReply()

    def _prepare_results(self, request: Any, _gone: Any) -> PrepareResultsReply:
        keys = [f"results/{item.lease_id}/{item.seq}" for item in request.results]
        return PrepareResultsReply(
            results=[PreparedResult(key=key, link=Link("PUT", f"{self.endpoint}/blob/{key}")) for key in keys]
        )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    master: ScriptedMaster


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, *_: Any) -> None:
        pass

    def handle(self) -> None:
        try:
            super().handle()
        except (ConnectionError, OSError):
            self.close_connection = True

    def _gone(self) -> bool:
        self.connection.setblocking(False)
        try:
            return not self.connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        finally:
            self.connection.setblocking(True)

    def do_POST(self) -> None:
        master = self.server.master
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if master.away:
            self._hang_up()
            return
        name = self.path.removeprefix("/v1/")
        route = next(route for route in routes.ROUTES if route.name == name)
        try:
            if self.headers["Authorization"] != f"Bearer {TOKEN}":
                raise InvalidToken("no such token: ask the operator for a worker token")
            reply = codec.encode(master.answer(name, codec.decode(body, route.request), self._gone))
            status = 200
        except RequestError as error:
            reply, status = codec.encode_error(error), error.status
        if master.away:
            self._hang_up()
            return
        self._send(status, reply)

    def _hang_up(self) -> None:
        self.close_connection = True
        with self.server.master.changed:
            self.server.master.refused += 1
            self.server.master.changed.notify_all()

    def do_GET(self) -> None:
        blob = self.server.master.blobs.get(self.path.removeprefix("/blob/"))
        if blob is None:
            self._send(404, b"no such blob")
            return
        match = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"])
        assert match
        self._send(206, blob[int(match[1]) : int(match[2]) + 1])

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.master.refused_uploads > 0:
            self.server.master.refused_uploads -= 1
            self._send(403, b"this link is too old")
            return
        with self.server.master.changed:
            key = self.path.removeprefix("/blob/")
            self.server.master.blobs[key] = body
        self._send(200, b"")

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
