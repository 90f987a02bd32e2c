"""Runs a whole embedded master in this process, without a socket."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from cloudpar_master.core.policy import Policy
from cloudpar_master.server.assembly import assemble
from cloudpar_master.server.data_folder import Connection, DataFolder
from cloudpar_protocol import codec, routes
from cloudpar_protocol.client_messages import AwaitTasks, Cursor, PackageStatus, StartTasks
from cloudpar_protocol.codec import ErrorReply
from cloudpar_protocol.payloads import RangeData, TaskCode
from cloudpar_protocol.routes import ReplyT, RequestT, Route
from cloudpar_protocol.worker_messages import Lease, PublishResults, RetrieveTasks
from support import world
from support.asgi import Answer, Exchange

T = TypeVar("T")

CONNECTION = Connection(endpoint="http://master.test", token="user", worker_token="worker", admin_token="admin")


def start_tasks(key: str = "key", *, tasks: int = 1, session: str = "-") -> StartTasks:
    code = TaskCode("0" * 64, b"code")
    return StartTasks(idempotency_key=key, session=session, n=tasks, code=code, data=RangeData(0, 1), python="3.11")


def retrieval(attempt: str = "attempt", *, chunks: int = 1, hold_s: float = 0.0) -> RetrieveTasks:
    return RetrieveTasks(attempt_id=attempt, worker_id=attempt, executors=1, chunks=chunks, hold_s=hold_s)


def publication(lease: Lease) -> PublishResults:
    """Publish results of all tasks of a lease."""
    return PublishResults(worker_id="w", executors=1, publications=[world.publication(lease, duration_us=10)])


def awaiting(*package_ids: str, cursor: int = 0, session: str = "-", hold_s: float = 0.0) -> AwaitTasks:
    packages = [Cursor(package_id=package_id, cursor=cursor) for package_id in package_ids]
    return AwaitTasks(session=session, packages=packages, hold_s=hold_s)


def decoded(answer: Answer, kind: type[T], media: str = codec.MSGPACK) -> T:
    assert answer.headers["content-type"] == media
    return codec.decode(answer.body, kind, media)


def error(answer: Answer, media: str = codec.MSGPACK) -> ErrorReply:
    assert answer.status != 200
    return decoded(answer, ErrorReply, media)


class Served:
    """A master on a data folder."""

    def __init__(
        self, folder: Path, policy: Policy | None = None, *, new_secret: bool = False, of_pool: bool = False
    ) -> None:
        self.folder = DataFolder(folder)
        try:
            self.assembly = assemble(
                self.folder, CONNECTION, policy or Policy(), new_secret=new_secret, of_pool=of_pool
            )
        except BaseException:
            self.folder.close()
            raise
        self.app = self.assembly.app

    def close(self) -> None:
        """Close the master, as the end of its process does."""
        self.assembly.database.close()
        self.folder.close()

    def send(
        self,
        method: str,
        path: str,
        body: bytes | Sequence[bytes] = b"",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send any request."""
        return self.run(Exchange(method, f"{CONNECTION.endpoint}{path}", body, headers))

    def run(self, exchange: Exchange) -> Answer:
        """Let a request be answered, without other requests at the same time."""
        return asyncio.run(exchange.run(self.app))

    @staticmethod
    def exchange(token: str, route: Route[RequestT, ReplyT], request: Struct) -> Exchange:
        """Make a call that a test may hang up."""
        headers = {"authorization": f"Bearer {token}", "content-type": codec.MSGPACK}
        return Exchange("POST", f"{CONNECTION.endpoint}{route.path}", codec.encode(request), headers)

    async def ask(self, token: str, route: Route[RequestT, ReplyT], request: Struct) -> ReplyT:
        """Make a call that succeeds, maybe after it was held."""
        answer = await self.exchange(token, route, request).run(self.app)
        assert answer.status == 200, answer.body
        return decoded(answer, route.reply)

    def call(self, token: str, route: Route[RequestT, ReplyT], request: Struct) -> ReplyT:
        """Make a call that succeeds at once."""
        return asyncio.run(self.ask(token, route, request))

    def status(self, package_id: str) -> PackageStatus:
        """Return the status of a package."""
        return self.call("user", routes.AWAIT_TASKS, awaiting(package_id)).packages[0]
