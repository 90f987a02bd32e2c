"""A client that sends the same requests as the real one."""

import zlib

from msgspec.structs import replace

from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import (
    Acknowledge,
    AwaitTasks,
    AwaitTasksReply,
    Cursor,
    Hello,
    PackageStatus,
    PreparedUpload,
    PrepareUploads,
    StartTasks,
    Upload,
)
from cloudpar_protocol.parts import completion
from cloudpar_protocol.payloads import BlobData, BlobRef, InlineData, TaskResult
from cloudpar_protocol.seals import Seals, package_id

from .world import World


def seal_key(world: World) -> bytes:
    """Return the key that a client seals with: the master answers it, and makes it if there is none."""
    key = world.ask("user", routes.HELLO, Hello()).seal_key
    assert key is not None
    return key


def sealed(world: World, start: StartTasks) -> tuple[StartTasks, Seals]:
    """Return a start with its seals, and the seals of its package."""
    seals = Seals(seal_key(world), package_id(world.account_id, start.idempotency_key, sealed=True))
    assert isinstance(start.data, InlineData)
    items = start.data.items
    data = InlineData(items, b"".join(seals.data(index, item) for index, item in enumerate(items)))
    seal = seals.code(start.code, data, call=start.call, codec=start.codec, python=start.python, tasks=start.n)
    return replace(start, data=data, seal=seal), seals


def upload(world: World, uploads: list[tuple[Upload, bytes]]) -> list[BlobRef]:
    """Upload payloads, in parts if the store takes parts."""
    request = PrepareUploads(uploads=[wanted for wanted, _ in uploads])
    prepared = world.ask("user", routes.PREPARE_UPLOADS, request).uploads
    return [_transfer(world, to, *payload) for to, payload in zip(prepared, uploads, strict=True)]


def _transfer(world: World, to: PreparedUpload, wanted: Upload, body: bytes) -> BlobRef:
    transfer = world.stores.transfer
    if to.parts is None:
        assert to.link is not None
        assert transfer(to.link, body).status == 200
    else:
        (link,) = to.parts.links  # a small payload is one part
        part = transfer(link, body)
        assert part.status == 200
        whole = completion([part.headers["etag"]], [zlib.crc32(body)])
        assert transfer(to.parts.complete, whole).status == 200
    return BlobRef(to.key, wanted.size)


class Client:
    """Starts a package, reads its results to the end, and acknowledges it.

    Attributes:
        uploaded: The keys of the task data that it uploaded.
    """

    def __init__(self, world: World, start: StartTasks, seals: Seals | None = None) -> None:
        self._world = world
        self._cursor = 0
        self._seals = seals
        self.uploaded = [start.data.blob.key] if isinstance(start.data, BlobData) else []
        self.results: dict[int, TaskResult] = {}
        self.values: dict[int, bytes | None] = {}
        self.package_id = world.ask("user", routes.START_TASKS, start).package_id
        self.status = self.read()

    def read(self) -> PackageStatus:
        """Read what is new."""
        reply = self._await()
        assert not reply.missing
        (self.status,) = reply.packages
        self._cursor = self.status.cursor
        for result in self.status.results:
            assert result.index not in self.results, "a task has one result"
            self.results[result.index] = result
            self.values[result.index] = self._fetch(result)
        return self.status

    def finds_nothing(self) -> bool:
        """Return whether the master no longer knows the package."""
        return set(self._await().missing) == {self.package_id}

    def _await(self) -> AwaitTasksReply:
        cursor = Cursor(package_id=self.package_id, cursor=self._cursor)
        return self._world.ask("user", routes.AWAIT_TASKS, AwaitTasks(packages=[cursor]))

    def _fetch(self, result: TaskResult) -> bytes | None:
        assert self._seals is None or self._seals.is_result(result)
        if result.blob is None:
            return result.data
        answer = self._world.stores.transfer(self.status.links[result.blob.key])
        assert answer.status == 200
        return answer.body

    def acknowledge(self) -> None:
        """Acknowledge the package."""
        self._world.ask("user", routes.ACKNOWLEDGE, Acknowledge(package_ids=[self.package_id]))
