"""The functions of several releases on one deployment, as during an update, and the calls of clients and workers."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Self, TypeVar

from msgspec import Struct

from cloudpar_protocol import codec, routes
from cloudpar_protocol.client_messages import AwaitTasks, Cursor, PackageStatus
from cloudpar_protocol.errors import InternalError
from cloudpar_protocol.routes import Route
from system.mixture import TODAY, Release, unpack

from . import function_process
from .calls import body_of, event
from .conftest import WORKER_TOKEN

RequestT = TypeVar("RequestT", bound=Struct)
ReplyT = TypeVar("ReplyT", bound=Struct)

LAST = "0.3.0"
"""The last release."""

TOKEN = "Ab_-" * 10 + "123"
"""A user's token in the form of release 0.3.0, which both releases accept."""

TRIES = 50
"""How many times a call is sent at most, if its errors say that it may succeed later."""


class Functions:
    """All functions of one release, in one process that answers one call at a time."""

    def __init__(self, release: Release, log: Path) -> None:
        self.release = release
        self._turn = threading.Lock()
        self._log = log.open("wb")
        folders = os.pathsep.join(map(str, release.folders("functions")))
        self._process = subprocess.Popen(
            [sys.executable, "-P", function_process.__file__],
            env={**os.environ, "PYTHONPATH": folders},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True,
        )  # fmt: skip

    def wait_until_ready(self) -> Self:
        """Wait for the process, and check that it runs the code of the release."""
        version, *files = self._answer()
        assert version == self.release.version
        assert all(Path(file).is_relative_to(self.release.root) for file in files), files
        return self

    def invoke(self, function: str, event: object) -> Any:
        """Return the answer of a function's handler."""
        with self._turn:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps({"function": function, "event": event}) + "\n")
            self._process.stdin.flush()
            return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the functions of {self.release.name} have ended: see {self._log.name}"
        return json.loads(line)

    def close(self) -> None:
        self._process.communicate()
        self._log.close()


@contextmanager
def last_and_today(folder: Path) -> Iterator[tuple[Functions, Functions]]:
    """Start the functions of the last release and those of today, with this process's environment."""
    last = unpack(LAST, folder / "release")
    with ExitStack() as opened:
        both = [opened.enter_context(closing(Functions(each, folder / f"{each.name}.log"))) for each in (last, TODAY)]
        yield both[0].wait_until_ready(), both[1].wait_until_ready()


class Deployment:
    """Functions that share their tables, queues and bucket. Each call goes to the next of them."""

    def __init__(self, *functions: Functions) -> None:
        self._functions = functions
        self._turns = count()

    def _next(self) -> Functions:
        return self._functions[next(self._turns) % len(self._functions)]

    def ask(self, route: Route[RequestT, ReplyT], message: RequestT, token: str = WORKER_TOKEN) -> ReplyT:
        """Call a route, and repeat the call while its error says that it may succeed later. Functions take turns."""
        function = "worker" if route.role == "worker" else "client"
        asked = event(route.path, codec.encode(message), token)
        for _ in range(TRIES):
            answer = self._next().invoke(function, asked)
            if answer["statusCode"] == 200:
                return codec.decode(body_of(answer), route.reply)
            error = codec.decode_error(body_of(answer), answer["statusCode"])
            if not error.retryable or isinstance(error, InternalError):
                raise error
        raise error

    def operate(self, route: Route[Any, ReplyT], **message: Any) -> ReplyT:
        """Call a route as the operator."""
        answer = self._next().invoke("account", {"route": route.name, "body": message})
        assert answer["status"] == 200, answer
        return codec.decode(json.dumps(answer["body"]).encode(), route.reply, codec.JSON)

    def tick(self) -> None:
        """Run the timer once."""
        self._next().invoke("timer", {})

    def status(self, package_id: str, token: str, cursor: int = 0) -> PackageStatus:
        """Return a package's news after a cursor."""
        asked = AwaitTasks(packages=[Cursor(package_id=package_id, cursor=cursor)])
        reply = self.ask(routes.AWAIT_TASKS, asked, token)
        assert not reply.missing
        return reply.packages[0]
