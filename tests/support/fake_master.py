"""A master in this process that runs tasks at once, over real HTTP and with scripted faults; for the SDK's tests."""

import math
import pickle
import struct
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

import cloudpickle
from msgspec.structs import replace

from cloudpar_protocol import codec, proofs
from cloudpar_protocol import routes as r
from cloudpar_protocol.client_messages import (
    Acknowledge,
    AcknowledgeReply,
    AwaitTasks,
    AwaitTasksReply,
    CancelTasks,
    CancelTasksReply,
    Hello,
    HelloReply,
    ListPackages,
    ListPackagesReply,
    PackageStatus,
    PackageSummary,
    PreparedUpload,
    PrepareUploads,
    PrepareUploadsReply,
    Progress,
    StartTasks,
    StartTasksReply,
)
from cloudpar_protocol.errors import InvalidToken, RequestError
from cloudpar_protocol.payloads import BlobData, BlobRef, Codec, InlineData, Link, RangeData, TaskResult
from cloudpar_protocol.seals import Seals
from cloudpar_protocol.seals import package_id as make_id
from support.http_server import Answer, HttpServer, Request

TOKEN = "a token"
ROUTES: dict[str, r.Route[Any, Any]] = {route.path: route for route in r.ROUTES}

T = TypeVar("T")


@dataclass
class Stored:
    """A package and its results at this master."""

    id: str
    message: StartTasks
    state: str = "running"
    pages: list[list[TaskResult]] = field(default_factory=list)
    finished: set[int] = field(default_factory=set)
    reason: str | None = None
    text: str | None = None
    cancelled: bool = False


class FakeMaster:
    """Start it, connect a Pool to `endpoint`, and set the attributes.

    Attributes:
        faults: By route, what to do with the next requests instead of answering: a status (429, 500, 503), "drop"
            (carry it out, then close the connection without an answer), "mute" (carry it out, and stay silent until
            the client closes the connection), "refuse" (close at once), or the answer of a gateway before the master
            (bytes, with status 429).
        automatic: Run tasks when a package starts; otherwise `run` does.
        hold: Hold awaits open until there is news.
        holds_longer: Hold awaits even beyond the time that they allow.
        retry_after_s: The pause in empty answers, if it does not hold.
        inline_bytes: Larger results go to blobs.
        page_tasks: How many results a page has.
        seal_key: With a key, packages are sealed.
        tamper: Changes results after they are sealed.
        claimed_codec: The codec that statuses name instead of the package's own.
        seen: The number of requests by route.
    """

    def __init__(self) -> None:
        self.faults: dict[str, deque[int | str | bytes]] = {}
        self.automatic = True
        self.hold = True
        self.holds_longer = False
        self.retry_after_s = 0.0
        self.inline_bytes = 1000
        self.page_tasks = 1000
        self.repeat_results = False
        self.seal_key: bytes | None = None
        self.tamper: Callable[[TaskResult], TaskResult] = lambda result: result
        self.claimed_codec: Codec | None = None
        self.seen: Counter[str] = Counter()
        self.messages: list[Any] = []
        self.packages: dict[str, Stored] = {}
        self.blobs: dict[str, bytes] = {}
        self.acknowledged: set[str] = set()
        self.condition = threading.Condition()
        self._by_key: dict[str, str] = {}
        self._latched: dict[str, set[str]] = {}
        self._server = HttpServer(self._serve)
        self.endpoint = self._server.endpoint

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self.condition:
            self.hold = False
            self.condition.notify_all()
        self._server.close()

    def _serve(self, request: Request) -> Answer | None:
        return self._serve_call(request) if request.method == "POST" else self._serve_blob(request)

    def _serve_call(self, request: Request) -> Answer | None:
        if request.path == proofs.PATH:  # as masters up to 0.2.0
            return Answer(404)
        route = ROUTES[request.path]
        message = codec.decode(request.body, route.request)
        fault = self._fault(route.name)
        with self.condition:
            self.seen[route.name] += 1
            self.messages.append(message)
            self.condition.notify_all()
        if fault == "refuse":
            return None
        if isinstance(fault, bytes):
            return Answer(429, fault)
        if isinstance(fault, int):
            kinds = {429: "rate_limited", 500: "internal", 503: "unavailable"}
            return Answer(fault, codec.encode(codec.ErrorReply(code=kinds[fault], message="later", retryable=True)))
        try:
            if request.headers["Authorization"] != f"Bearer {TOKEN}":
                raise InvalidToken("this token is unknown")
            reply = codec.encode(self.answer(message))
        except RequestError as error:
            return Answer(error.status, codec.encode_error(error))
        if fault == "mute":
            request.connection.recv(1)
        return None if fault in {"drop", "mute"} else Answer(200, reply)

    def _serve_blob(self, request: Request) -> Answer | None:
        method, key = request.method.lower(), request.path.removeprefix("/blobs/")
        if method == "get" and key == request.path:
            return Answer(404)
        fault = self._fault(method)
        self.seen[method] += 1
        if isinstance(fault, int):
            return Answer(fault, b"not now")
        if method == "put":
            self.blobs[key] = request.body
            return None if fault == "drop" else Answer(200)
        start, _, end = request.headers["Range"].removeprefix("bytes=").partition("-")
        return Answer(206, self.blobs[key][int(start) : int(end) + 1])

    def _fault(self, name: str) -> int | str | bytes | None:
        faults = self.faults.get(name)
        return faults.popleft() if faults else None

    def answer(self, message: Any) -> Any:
        return _ANSWERS[type(message)](self, message)

    def hello(self, _: Hello) -> HelloReply:
        who = HelloReply(release="0.1.0", role="user", account_id="a", name="ada", granted_us=10**12)
        return replace(who, seal_key=self.seal_key)

    def prepare(self, message: PrepareUploads) -> PrepareUploadsReply:
        uploads = []
        for upload in message.uploads:
            key = f"{upload.kind}-{upload.hash or upload.crc32}"
            there = upload.kind == "code" and key in self.blobs
            link = None if there else Link(method="PUT", url=f"{self.endpoint}/blobs/{key}")
            uploads.append(PreparedUpload(key=key, link=link))
        return PrepareUploadsReply(uploads=uploads)

    def start(self, message: StartTasks) -> StartTasksReply:
        with self.condition:
            package_id = self._by_key.get(message.idempotency_key)
            if package_id is None:
                package_id = f"p{len(self.packages)}"
                if message.seal is not None:
                    package_id = make_id("a", message.idempotency_key, sealed=True)
                self._by_key[message.idempotency_key] = package_id
                self.packages[package_id] = Stored(package_id, message)
                self._latched.setdefault(message.session, set()).add(package_id)
                self.condition.notify_all()
                if self.automatic:
                    self.run(package_id)
        return StartTasksReply(package_id=package_id)

    def run(self, package_id: str, only: range | None = None) -> None:
        """Run tasks of a package and publish their results as pages."""
        stored = self.packages[package_id]
        message = stored.message
        code = message.code.inline if message.code.inline is not None else self.blobs[message.code.blob.key]  # type: ignore[union-attr]
        results = [self._run_task(stored, code, index) for index in (only or range(message.n))]
        self.publish(package_id, results)

    def publish(self, package_id: str, results: list[TaskResult]) -> None:
        """Make results visible; the last one ends the package."""
        stored = self.packages[package_id]
        with self.condition:
            fresh = [self._seal(stored, result) for result in results if result.index not in stored.finished]
            stored.finished.update(result.index for result in fresh)
            for first in range(0, len(fresh), self.page_tasks):
                stored.pages.append(fresh[first : first + self.page_tasks])
            if len(stored.finished) == stored.message.n and stored.state == "running":
                errors = any(result.outcome != "ok" for page in stored.pages for result in page)
                stored.state = "error" if errors else "completed"
            self.condition.notify_all()

    def _seal(self, stored: Stored, result: TaskResult) -> TaskResult:
        if stored.message.seal is None or self.seal_key is None:
            return result
        data, blob = result.data, result.blob
        if blob is not None:
            data = self.blobs[blob.key][blob.offset : blob.offset + blob.size]
        (sealed,) = Seals(self.seal_key, stored.id).sealed([replace(result, data=data)])
        return self.tamper(replace(sealed, data=result.data))

    def fail(self, package_id: str, state: str, reason: str, text: str) -> None:
        stored = self.packages[package_id]
        with self.condition:
            stored.state, stored.reason, stored.text = state, reason, text
            self.condition.notify_all()

    def end_all(self) -> None:
        """Fail all running packages."""
        for package_id, stored in list(self.packages.items()):
            if stored.state == "running":
                self.fail(package_id, "failed", "test", "the test is over")

    def _data(self, message: StartTasks, index: int) -> Any:
        data = message.data
        if isinstance(data, RangeData):
            return data.start + index * data.step
        if isinstance(data, InlineData):
            return pickle.loads(data.items[index])
        assert isinstance(data, BlobData)
        blob = self.blobs[data.blob.key]
        assert len(blob) == data.blob.size
        table = len(blob) - 8 * (message.n + 1)
        start, end = struct.unpack_from("<2Q", blob, table + 8 * index)
        return pickle.loads(blob[start:end])

    def _run_task(self, stored: Stored, code: bytes, index: int) -> TaskResult:
        style = stored.message.call
        try:
            function, data = pickle.loads(code), self._data(stored.message, index)
            match style:
                case "value":
                    value = function(data)
                case "args":
                    value = function(*data)
                case _:
                    value = function(*data[0], **data[1])
        except Exception as error:  # noqa: BLE001 - a task may raise anything
            data, text = cloudpickle.dumps(error), traceback.format_exc()
            return TaskResult(index, "error", 1000, data=data, message=str(error), traceback=text)
        payload = cloudpickle.dumps(value)
        if len(payload) <= self.inline_bytes:
            return TaskResult(index, "ok", 1000, data=payload)
        key = f"results-{stored.id}"
        with self.condition:
            offset = len(self.blobs.get(key, b""))
            self.blobs[key] = self.blobs.get(key, b"") + payload
        return TaskResult(index, "ok", 1000, blob=BlobRef(key, len(payload), offset))

    def await_tasks(self, message: AwaitTasks) -> AwaitTasksReply:
        asked = {cursor.package_id for cursor in message.packages}
        until = math.inf if self.holds_longer and message.hold_s else time.monotonic() + message.hold_s
        with self.condition:
            while True:
                reply = self._statuses(message)
                news = reply.missing or any(each.results or each.state != "running" for each in reply.packages)
                latched = self._latched.get(message.session, set())
                woken = bool(latched - asked)
                latched.clear()
                left = until - time.monotonic()
                if news or woken or not self.hold or left <= 0:
                    return reply
                self.condition.wait(min(left, threading.TIMEOUT_MAX))

    def _statuses(self, message: AwaitTasks) -> AwaitTasksReply:
        packages, missing = [], {}
        for cursor in message.packages:
            stored = self.packages.get(cursor.package_id)
            if stored is None or cursor.package_id in self.acknowledged:
                missing[cursor.package_id] = f"package {cursor.package_id} does not exist"
            else:
                packages.append(self._status(stored, cursor.cursor))
        held = self.hold and message.hold_s
        return AwaitTasksReply(packages=packages, missing=missing, retry_after_s=0.0 if held else self.retry_after_s)

    def _status(self, stored: Stored, cursor: int) -> PackageStatus:
        first = max(0, cursor - 1) if self.repeat_results else cursor
        pages = stored.pages[first : cursor + 1]
        results = [result for page in pages for result in page]
        keys = {result.blob.key for result in results if result.blob}
        n, done = stored.message.n, len(stored.finished)
        return PackageStatus(
            package_id=stored.id,
            state=stored.state,  # type: ignore[arg-type]
            cursor=min(cursor + 1, len(stored.pages)),
            more=cursor + 1 < len(stored.pages),
            results=results,
            links={key: Link(method="GET", url=f"{self.endpoint}/blobs/{key}") for key in keys},
            progress=Progress(tasks=n, done=done, executors=1, charged_us=1000 * done, retrieve_us=10, publish_us=20),
            reason=stored.reason,
            message=stored.text,
            settled=stored.state != "running",
            codec=self.claimed_codec or stored.message.codec,
        )

    def cancel(self, message: CancelTasks) -> CancelTasksReply:
        stored = self.packages[message.package_id]
        wanted = [index for start, end in message.ranges or [(0, stored.message.n)] for index in range(start, end)]
        with self.condition:
            cancelled = [index for index in wanted if index not in stored.finished]
            if message.ranges is None and not message.only_queued and stored.state == "running":
                stored.state, stored.reason, stored.text = "cancelled", "cancelled", "cancelled by its user"
                self.condition.notify_all()
        if stored.state == "running" and cancelled:
            self.publish(message.package_id, [TaskResult(index, "cancelled", 0) for index in cancelled])
        return CancelTasksReply(
            state=stored.state,  # type: ignore[arg-type]
            cancelled=[(index, index + 1) for index in cancelled],
            charged_us=1000 * len(stored.finished),
        )

    def acknowledge(self, message: Acknowledge) -> AcknowledgeReply:
        with self.condition:
            self.acknowledged.update(message.package_ids)
            self.condition.notify_all()
        return AcknowledgeReply()

    def list_packages(self, message: ListPackages) -> ListPackagesReply:
        with self.condition:
            listed = [
                PackageSummary(
                    package_id=stored.id, account_id="a", name=stored.message.name, started_at=0.0,
                    state=stored.state, progress=Progress(tasks=stored.message.n),  # type: ignore[arg-type]
                )
                for stored in reversed(self.packages.values())
                if stored.id not in self.acknowledged
            ]  # fmt: skip
        return ListPackagesReply(packages=listed[: message.limit])

    def received(self, kind: type[T]) -> list[T]:
        """Return the requests of a kind so far."""
        return [message for message in self.messages if isinstance(message, kind)]

    def wait_for(self, condition: Callable[[], object]) -> None:
        """Wait until a condition holds; every change of this master notifies."""
        with self.condition:
            assert self.condition.wait_for(condition, 60)


_ANSWERS: dict[type[Any], Callable[[FakeMaster, Any], Any]] = {
    Hello: FakeMaster.hello,
    PrepareUploads: FakeMaster.prepare,
    StartTasks: FakeMaster.start,
    AwaitTasks: FakeMaster.await_tasks,
    CancelTasks: FakeMaster.cancel,
    Acknowledge: FakeMaster.acknowledge,
    ListPackages: FakeMaster.list_packages,
}
