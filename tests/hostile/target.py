"""A master that takes all requests: the server's routes and the functions' events, on the same stores.

This module does not import pytest, since the fuzzer runs it as well.
"""

import asyncio
import base64
import io
import shutil
from collections.abc import Iterator
from contextlib import redirect_stdout
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from cloudpar_handlers.endpoint import Endpoint
from cloudpar_handlers.request_log import RequestLog
from cloudpar_master.core.policy import Policy
from cloudpar_master.server import assembly
from cloudpar_protocol import codec
from cloudpar_protocol.client_messages import ListPackages
from cloudpar_protocol.codec import ErrorReply
from cloudpar_protocol.routes import ROUTES, Route
from master.server.served import CONNECTION, Served, awaiting, publication, retrieval, start_tasks
from support.asgi import Exchange
from support.ids import CountedIds

MEDIA = (codec.MSGPACK, codec.JSON)
TOKENS = {"user": CONNECTION.token, "worker": CONNECTION.worker_token, "admin": CONNECTION.admin_token}
TASKS = 40


UNLIMITED = Policy(task_timeout_s=60.0, requests_per_s=1e9, request_burst=10**9, running_packages=10**9)
"""No request is refused because it comes too soon, so each answer is about the request itself."""


class Unsound(AssertionError):
    """An answer that the master must never give."""


class Knock(NamedTuple):
    route: Route[Any, Any]
    media: str
    body: bytes

    @property
    def headers(self) -> dict[str, str]:
        """Return headers with a token that the route accepts: otherwise the request ends before its body is read."""
        token = CONNECTION.worker_token if self.route.role == "any" else TOKENS[self.route.role]
        return {"authorization": f"Bearer {token}", "content-type": self.media}

    def pack(self) -> bytes:
        """Return the form of the corpus: two bytes, then the body.

        >>> Knock.parse(Knock(ROUTES[3], codec.JSON, b"{}").pack()).route.name
        'await_tasks'
        """
        return bytes([ROUTES.index(self.route), MEDIA.index(self.media)]) + self.body

    @classmethod
    def parse(cls, data: bytes) -> "Knock":
        """Return the request that any bytes stand for; the reverse of `pack`."""
        route, media = (*data[:2], 0, 0)[:2]
        return cls(ROUTES[route % len(ROUTES)], MEDIA[media % len(MEDIA)], data[2:])


class Silence(io.TextIOBase):
    """Discards the function's log."""

    def write(self, text: str) -> int:
        return len(text)


class Target:
    """A master with running packages and leases."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loop = asyncio.new_event_loop()
        self._log = Silence()
        self._names = count()
        self._open()

    def _open(self) -> None:
        vars(assembly)["RandomIds"] = CountedIds  # a request of the corpus finds its package and lease in every world
        self._served = Served(self._folder / str(next(self._names)), UNLIMITED)
        self._served.assembly.database.execute("PRAGMA synchronous = OFF")
        long_polling = self._served.assembly.long_polling
        long_polling.end()  # no request is held: one that would wait is answered at once
        with redirect_stdout(self._log):
            self._function = Endpoint(long_polling.dispatcher, RequestLog(), ROUTES)
        self.seeds = [knock.pack() for knock in self._lives()]

    def _lives(self) -> Iterator[Knock]:
        """Yield requests of normal use, with ids that are valid here."""
        for number in range(2):
            yield self._do("start_tasks", start_tasks(str(number), tasks=TASKS))
        package_id = self._reply.package_id
        yield self._do("await_tasks", awaiting(package_id, hold_s=20.0))
        yield self._do("retrieve_tasks", retrieval("first", chunks=6))
        for lease in self._reply.leases[:-1]:
            yield Knock(_route("publish_results"), codec.MSGPACK, codec.encode(publication(lease)))
        self._do("publish_results", publication(self._reply.leases[-1]))

    def _do(self, name: str, message: Any) -> Knock:
        knock = Knock(_route(name), codec.MSGPACK, codec.encode(message))
        status, _, body = self._serve(knock)
        if status != 200:
            raise Unsound(body)
        self._reply = codec.decode(body, knock.route.reply)
        return knock

    def close(self) -> None:
        """Forget this world, after a fold has accepted every event in it."""
        self._do("list_packages", ListPackages(limit=1000))
        broken = [package.message for package in self._reply.packages if package.reason == "broken"]
        self._served.close()
        shutil.rmtree(self._served.folder.path)
        if broken:
            raise Unsound(broken)

    def end(self) -> None:
        self.close()
        self._loop.close()

    def renew(self) -> None:
        """Start a new world: in the old one, too many requests have changed the state."""
        self.close()
        self._open()

    def server(self, knock: Knock) -> int:
        """Send a request to the embedded server. Returns the status.

        Raises:
            Unsound: A fault of the master, or an answer that is not valid.
        """
        return self._sound(knock, *self._serve(knock))

    def _serve(self, knock: Knock) -> tuple[int, str, bytes]:
        exchange = Exchange("POST", CONNECTION.endpoint + knock.route.path, knock.body, knock.headers)
        answer = self._loop.run_until_complete(exchange.run(self._served.app))
        return answer.status, answer.headers["content-type"], answer.body

    def function(self, knock: Knock, *, binary: bool = True) -> int:
        """Send it to the function behind API Gateway, which encodes bodies that it takes for bytes."""
        body = base64.b64encode(knock.body).decode() if binary else knock.body.decode(errors="replace")
        event = {"rawPath": knock.route.path, "headers": knock.headers, "body": body, "isBase64Encoded": binary}
        with redirect_stdout(self._log):
            answer = self._function.serve(event, None)
        text = answer["body"]
        given = base64.b64decode(text) if answer["isBase64Encoded"] else text.encode()
        return self._sound(knock, answer["statusCode"], answer["headers"]["content-type"], given)

    def _sound(self, knock: Knock, status: int, media: str, body: bytes) -> int:
        if status == 200:
            codec.decode(body, knock.route.reply, media)
            return status
        error = codec.decode(body, ErrorReply, media)
        if not 400 <= status < 500 or not error.message:
            raise Unsound(f"{knock.route.name} answered {status} {error.code}: {error.message}")
        return status


def _route(name: str) -> Route[Any, Any]:
    return next(route for route in ROUTES if route.name == name)
