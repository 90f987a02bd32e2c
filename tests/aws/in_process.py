"""moto as a function call, without server and sockets, which halves the time. It serves one caller at a time."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders
from moto.core.botocore_stubber import BotocoreStubber, MockRawResponse
from moto.core.model_instances import reset_model_data

from cloudpar_master.adapters.aws.clients import Clients
from cloudpar_master.ports import Clock
from cloudpar_protocol.payloads import Link
from support.asgi import Answer
from support.clock import SetClock
from support.stores import Stores

from .attempts import Attempts
from .stores import REGION, Names, clients, create, let_queue_go_by, name_of, stores

ENDPOINT = "http://127.0.0.1:9"
"""No server listens here, so a call that is not answered in this process fails."""

_moto = BotocoreStubber()


class Watcher(Protocol):
    """Watches the calls of AWS, and may raise an error instead of them."""

    def before(self, operation: str) -> None:
        """A call starts; the library may send several requests for it."""
        ...

    def asked(self, service: str, request: AWSPreparedRequest) -> AWSResponse | None:
        """A request arrives. If this returns an answer, the request is not carried out."""
        ...

    def sent(self, request: AWSPreparedRequest) -> AWSResponse | None:
        """A request was carried out and is not answered yet. An answer that this returns replaces the real one."""
        ...

    def after(self) -> None:
        """The call ends."""
        ...


class _Transport:
    """Takes the place of the network."""

    def __init__(self) -> None:
        self.watcher: Watcher | None = None
        self._done: tuple[str, AWSResponse] | None = None
        self._attempts = Attempts(partial(respond, "sqs"), REGION)

    def join(self, service: str, client: Any) -> None:
        """Make a client send its requests here."""
        events = client.meta.events
        events.register("before-call", self._before)
        events.register("before-send", partial(self._send, service))
        events.register("after-call", self._after)

    def _before(self, model: Any, **_: Any) -> None:
        if self.watcher:
            self.watcher.before(model.name)

    def _send(self, service: str, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        refused = self.watcher.asked(service, request) if self.watcher else None
        if refused is not None:
            return refused
        answer = self._carry_out(service, request)
        instead = self.watcher.sent(request) if self.watcher else None
        return answer if instead is None else instead

    def _carry_out(self, service: str, request: AWSPreparedRequest) -> AWSResponse:
        """Carry out a request; one with a known transaction token only once, since moto ignores the tokens."""
        if service == "sqs":
            return self._attempts.carry_out(_without_waiting(request))
        token = _token(request)
        if token and self._done and self._done[0] == token:
            return self._done[1]
        answer = respond(service, request)
        if token and answer.status_code == 200:
            self._done = token, answer
        return answer

    def _after(self, **_: Any) -> None:
        if self.watcher:
            self.watcher.after()


def _without_waiting(request: Any) -> Any:
    """Let a request look for messages only once: it would wait for good, because a test's clock stands meanwhile."""
    body = json.loads(request.body)
    if body.pop("WaitTimeSeconds", 0):
        request.body = json.dumps(body).encode()
    return request


def _token(request: Any) -> str:
    """Return the token of a transaction that writes; other requests have none."""
    if b"TransactWriteItems" not in bytes(request.headers.get("X-Amz-Target", b"")):
        return ""
    return str(json.loads(request.body)["ClientRequestToken"])


def respond(service: str, request: AWSPreparedRequest) -> AWSResponse:
    """Return moto's answer to a request."""
    # Moto identifies a service by its host name.
    url = request.url.replace(ENDPOINT, f"http://{service}.{REGION}.amazonaws.com")
    asked = AWSPreparedRequest(request.method, url, request.headers, request.body, stream_output=False)
    answer = _moto.process_request(asked)
    assert answer is not None, url
    status, headers, body = answer
    return AWSResponse(request.url, status, HTTPHeaders.from_dict(headers), MockRawResponse(body))


_transport = _Transport()


@contextmanager
def watched_by(watcher: Watcher) -> Iterator[None]:
    """Have a watcher see all calls."""
    _transport.watcher = watcher
    try:
        yield
    finally:
        _transport.watcher = None


@cache
def _join() -> None:
    made = clients(ENDPOINT)
    for service in ("dynamodb", "sqs", "s3"):
        _transport.join(service, getattr(made, service))


def transfer(link: Link, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Answer:
    sent = {**link.headers, **(headers or {})}
    if link.method != "GET":
        sent["Content-Length"] = str(len(body))
    request = AWSPreparedRequest(link.method, link.url, HTTPHeaders.from_dict(sent), body, stream_output=False)
    answer = respond("s3", request)
    return Answer(answer.status_code, {name.lower(): value for name, value in answer.headers.items()}, answer.content)


def clients_in_process(clock: Clock) -> Clients:
    """Return clients of moto, whose queues use this clock."""
    _join()
    let_queue_go_by(clock)
    return clients(ENDPOINT)


@contextmanager
def in_process(folder: Path, clock: SetClock) -> Iterator[Stores]:
    """Yield adapters on moto without a server."""
    clients_in_process(clock)
    yield stores(name_of(folder) + "-i", clock, ENDPOINT, ENDPOINT, ENDPOINT)._replace(transfer=transfer)


def remove(folder: Path) -> None:
    """Delete what belongs to a folder."""
    free(create(name_of(folder) + "-i", ENDPOINT, ENDPOINT, ENDPOINT))


def free(names: Names) -> None:
    """Delete the resources of a deployment."""
    at = clients(ENDPOINT)
    for table in (names.packages, names.accounts):
        at.dynamodb.delete_table(TableName=table)
    for url in (names.queue_url, names.dead_letter_url, names.express_url):
        at.sqs.delete_queue(QueueUrl=url)
    reset_model_data()  # otherwise moto keeps all rows in memory
