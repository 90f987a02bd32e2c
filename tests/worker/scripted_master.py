"""A master for the agent's tests: it hands out the leases of the test, and records what the agent sends."""

import re
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from cloudpar_protocol import codec, proofs, routes
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
    TaskCredentials,
)
from support.http_server import Answer, HttpServer, Request
from support.running_agent import TOKEN
from support.waiting import HANG_S

LEASE_S = 1.5


class ScriptedMaster:
    """Hands out leases, and records publications and give-backs; `changed` is notified of every change."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.leases: deque[Lease] = deque()
        self.views: dict[str, LeaseView] = {}
        self.credentials: list[TaskCredentials] = []
        """What a beat gets that requests credentials."""
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
        self._server = HttpServer(self._serve)
        self.endpoint = self._server.endpoint

    def close(self) -> None:
        with self.changed:
            self.away = True
            self.changed.notify_all()
        self._server.close()

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

    def _serve(self, request: Request) -> Answer | None:
        if request.path.startswith("/blob/"):
            return self._serve_blob(request)
        if request.path == proofs.PATH and not self.away:  # as masters up to 0.2.0
            return Answer(404)
        answer = None if self.away else self._serve_call(request)
        if self.away:  # perhaps only since the call
            with self.changed:
                self.refused += 1
                self.changed.notify_all()
            return None
        return answer

    def _serve_call(self, request: Request) -> Answer:
        name = request.path.removeprefix("/v1/")
        route = next(route for route in routes.ROUTES if route.name == name)
        try:
            if request.headers["Authorization"] != f"Bearer {TOKEN}":
                raise InvalidToken("no such token: ask the operator for a worker token")
            reply = self._answer(name, codec.decode(request.body, route.request), request.gone)
            return Answer(200, codec.encode(reply))
        except RequestError as error:
            return Answer(error.status, codec.encode_error(error))

    def _serve_blob(self, request: Request) -> Answer:
        key = request.path.removeprefix("/blob/")
        if request.method == "PUT":
            if self.refused_uploads > 0:
                self.refused_uploads -= 1
                return Answer(403, b"this link is too old")
            with self.changed:
                self.blobs[key] = request.body
            return Answer(200)
        if key not in self.blobs:
            return Answer(404, b"no such blob")
        match = re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers["Range"])
        assert match
        return Answer(206, self.blobs[key][int(match[1]) : int(match[2]) + 1])

    def _answer(self, route: str, request: Any, gone: Callable[[], bool]) -> Any:
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
        credentials = self.credentials if request.credentials else []
        return ExtendLeasesReply(leases=views, hungry=self.hungry, credentials=credentials)

    def _give_back(self, request: Any, _gone: Any) -> GiveBackReply:
        self.returns += request.returns
        return GiveBackReply()

    def _prepare_results(self, request: Any, _gone: Any) -> PrepareResultsReply:
        keys = [f"results/{item.lease_id}/{item.seq}" for item in request.results]
        return PrepareResultsReply(
            results=[PreparedResult(key=key, link=Link("PUT", f"{self.endpoint}/blob/{key}")) for key in keys]
        )
