"""An account that tries to hold up a master and its workers: `python -m system.attacker ENDPOINT TOKEN`.

For each line on standard input it prints how often it has done each of its tricks. It ends with standard input.
"""

import asyncio
import json
import os
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from hashlib import sha256
from itertools import cycle
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from zlib import crc32

from cloudpar_protocol import codec, proofs, routes
from cloudpar_protocol.client_messages import (
    Acknowledge,
    AwaitTasks,
    Cursor,
    ListPackages,
    PrepareUploads,
    StartTasks,
    Upload,
)
from cloudpar_protocol.limits import HOLD_S, INLINE_RESULT_BYTES
from cloudpar_protocol.payloads import BlobData, BlobRef, InlineData, Link, RangeData, TaskCode, TaskData
from hostile.target import Knock
from hostile.test_g21_bodies import CORPUS
from support.leases import PYTHON, code_of

from .raw_line import Line

HUGE: Final = 1 << 30
LARGE: Final = 64 << 20
SMALL: Final = 16 << 10
EMPTY_ITEMS: Final = 2_000_000
PATIENCE_S: Final = 1.5 * HOLD_S
STALL_S: Final = 2.0


def nothing(_: int) -> None:
    """A task of about a microsecond."""


def take_5_ms(_: int) -> None:
    """A task that takes longer than a master expects of a task that returns nothing."""
    time.sleep(0.005)


def return_much(_: int) -> bytes:
    """A task whose result is too large for a publication, so that the worker uploads it by a link."""
    return bytes(4 * INLINE_RESULT_BYTES)


def leave_process(_: int) -> None:
    """A task that leaves a process that computes, until its worker ends it, or for a minute if a test run is killed."""
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    ends_at = time.monotonic() + 60
    while time.monotonic() < ends_at:
        pass
    os._exit(0)


def leave_entries(_: int) -> None:
    """A task that leaves many entries in shared memory, and in its own folder."""
    for number in range(1_000):
        for place in ("/dev/shm", tempfile.gettempdir()):
            try:
                Path(place, f"{os.getpid()}-{number}").touch()
            except OSError:
                break


class Attacker:
    """Does tricks, each on some connections at once, again and again."""

    def __init__(self, endpoint: str, token: str) -> None:
        self._endpoint = endpoint
        self._token = token
        self._flood = ""
        self._flooding = asyncio.Event()
        knocks = [Knock.parse(path.read_bytes()) for path in CORPUS]
        self._damaged = cycle(knock for knock in knocks if knock.route.role in {"user", "any"})
        self._empty = codec.encode(self._order(InlineData([b""] * EMPTY_ITEMS), nothing, EMPTY_ITEMS))
        self._shared: list[tuple[Link, int]] = []
        self.done: Counter[str] = Counter()
        self.tricks: dict[Callable[[Line], Awaitable[Any]], int] = {
            self.missing_data: 4, self.stalled_uploads: 16, self.empty_uploads: 4, self.half_heads: 300,
            self.unused_uploads: 4, self.unused_code: 4, self.empty_items: 2, self.lists: 64, self.held_awaits: 64,
            self.other_sessions: 16, self.trailers: 8, self.pipelined: 8, self.damaged_bodies: 8,
            self.short_results: 2, self.left_processes: 1, self.left_entries: 1, self.unknown_tokens: 64,
            self.challenges: 32, self.unknown_paths: 32, self.same_link: 64, self.missing_code: 4, self.deleted_data: 2,
            self.unfit_packages: 4, self.single_tasks: 8, self.large_results: 1,
        }  # fmt: skip

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for trick, lines in self.tricks.items():
                for _ in range(lines):
                    group.create_task(self._repeat(trick))

    async def _repeat(self, trick: Callable[[Line], Awaitable[Any]]) -> None:
        while True:
            line = Line(self._endpoint, self._token)
            try:
                while True:
                    async with asyncio.timeout(PATIENCE_S):
                        await trick(line)
                    self.done[trick.__name__] += 1
            except (OSError, EOFError, TimeoutError):  # the master has closed the connection, which is an answer, too
                self.done[trick.__name__] += 1
            finally:
                line.close()

    def _order(
        self, data: TaskData, function: Callable[..., Any] | TaskCode, tasks: int, python: str = PYTHON
    ) -> StartTasks:
        code = function if isinstance(function, TaskCode) else code_of(function)
        return StartTasks(
            idempotency_key=secrets.token_hex(16), session=secrets.token_hex(8), n=tasks, code=code, data=data,
            python=python,
        )  # fmt: skip

    async def _prepare(self, line: Line, kind: str, body: bytes, size: int | None = None) -> tuple[str, Link] | None:
        hashed = sha256(body).hexdigest() if kind == "code" else None
        size = len(body) if size is None else size
        upload = Upload(kind=kind, size=size, crc32=crc32(body), hash=hashed)  # type: ignore[arg-type]
        status, answer = await line.call(routes.PREPARE_UPLOADS, PrepareUploads(uploads=[upload]))
        if status != 200:
            return None
        prepared = codec.decode(answer, routes.PREPARE_UPLOADS.reply).uploads[0]
        return None if prepared.link is None else (prepared.key, prepared.link)

    async def _put(self, line: Line, link: Link, body: bytes, size: int) -> None:
        url = urlsplit(link.url)
        await line.send("PUT", f"{url.path}?{url.query}", body, dict(link.headers), size)

    async def missing_data(self, line: Line) -> None:
        """Start a package whose data is never uploaded."""
        prepared = await self._prepare(line, "data", b"", SMALL)
        if prepared:
            await line.call(routes.START_TASKS, self._order(BlobData(BlobRef(prepared[0], SMALL)), nothing, 10))

    async def stalled_uploads(self, line: Line) -> None:
        """Upload the first byte of a large payload."""
        prepared = await self._prepare(line, "data", b"", LARGE)
        if prepared:
            await self._put(line, prepared[1], b"x", LARGE)
            await self._stall(line)

    async def empty_uploads(self, line: Line) -> None:
        """Upload nothing in place of a large payload."""
        prepared = await self._prepare(line, "data", b"", LARGE)
        if prepared:
            await self._put(line, prepared[1], b"", 0)
            await line.answer()

    async def same_link(self, line: Line) -> None:
        """Upload the first byte of a huge payload, by a link that other connections use at the same time."""
        if not self._shared:
            prepared = await self._prepare(line, "data", b"", HUGE)
            self._shared += [(prepared[1], HUGE)] if prepared else []
        for link, size in self._shared[-1:]:
            await self._put(line, link, b"x", size)
            try:
                await self._stall(line)
            finally:
                line.close()

    async def missing_code(self, line: Line) -> None:
        """Start a package whose code is never uploaded."""
        code = secrets.token_bytes(SMALL)
        prepared = await self._prepare(line, "code", code)
        if prepared:
            blob = TaskCode(sha256(code).hexdigest(), blob=BlobRef(prepared[0], SMALL))
            await line.call(routes.START_TASKS, self._order(RangeData(0, 1), blob, 10))

    async def deleted_data(self, line: Line) -> None:
        """Start two packages with the same data, and let the master delete it with the first one."""
        body = bytes(SMALL)
        prepared = await self._prepare(line, "data", body)
        if not prepared:
            return
        await self._put(line, prepared[1], body, SMALL)
        await line.answer()
        data, started = BlobData(BlobRef(prepared[0], SMALL)), []
        for _ in range(2):
            status, answer = await line.call(routes.START_TASKS, self._order(data, nothing, 10))
            if status == 200:
                started.append(codec.decode(answer, routes.START_TASKS.reply).package_id)
        for package_id in started:
            await line.call(routes.ACKNOWLEDGE, Acknowledge(package_ids=[package_id]))
            await asyncio.sleep(STALL_S)

    async def unknown_tokens(self, line: Line) -> None:
        """Send a token that the master does not know."""
        await line.write(b"POST /v1/hello HTTP/1.1\r\nHost: m\r\nAuthorization: Bearer x\r\nContent-Length: 0\r\n\r\n")
        await line.answer()

    async def unknown_paths(self, line: Line) -> None:
        await line.write(b"GET /unknown HTTP/1.1\r\nHost: m\r\n\r\n")
        await line.answer()

    async def challenges(self, line: Line) -> None:
        """Ask the master to prove that it knows a token."""
        body = codec.encode(proofs.Prove(key="0" * 16, nonce="0" * 32))
        await line.write(
            b"POST %s HTTP/1.1\r\nHost: m\r\nContent-Length: %d\r\n\r\n" % (proofs.PATH.encode(), len(body))
        )
        await line.write(body)
        await line.answer()

    async def half_heads(self, line: Line) -> None:
        """Send half the head of a request, without a token."""
        await line.write(b"POST /v1/hello HTTP/1.1\r\nHost:")
        await self._stall(line)

    async def _stall(self, line: Line) -> None:
        """Send no more, until the master answers or closes the connection, or for a while."""
        async with asyncio.timeout(STALL_S):
            await line.answer()

    async def unused_uploads(self, line: Line) -> None:
        await self._upload(line, "data")

    async def unused_code(self, line: Line) -> None:
        await self._upload(line, "code")

    async def _upload(self, line: Line, kind: str) -> None:
        body = secrets.token_bytes(SMALL)
        prepared = await self._prepare(line, kind, body)
        if prepared:
            await self._put(line, prepared[1], body, len(body))
            await line.answer()

    async def empty_items(self, line: Line) -> None:
        """Start a package of very many empty items."""
        await line.send("POST", routes.START_TASKS.path, self._empty)
        status, answer = await line.answer()
        if status == 200:
            package_id = codec.decode(answer, routes.START_TASKS.reply).package_id
            await line.call(routes.ACKNOWLEDGE, Acknowledge(package_ids=[package_id]))

    async def lists(self, line: Line) -> None:
        await line.call(routes.LIST_PACKAGES, ListPackages(limit=1000))

    async def held_awaits(self, line: Line) -> None:
        """Await the same package on many connections, so that the master answers all of them at the same time."""
        await self._flooding.wait()
        await line.call(routes.AWAIT_TASKS, self._await(self._flood))

    def _await(self, package_id: str, cursor: int = 0, hold_s: float = HOLD_S) -> AwaitTasks:
        cursors = [Cursor(package_id=package_id, cursor=cursor)]
        return AwaitTasks(session=secrets.token_hex(8), packages=cursors, hold_s=hold_s)

    async def other_sessions(self, line: Line) -> None:
        """Await a package for one new session after another."""
        await line.call(routes.AWAIT_TASKS, self._await(self._flood or "none", hold_s=0.0))

    async def trailers(self, line: Line) -> None:
        """Send a body in chunks, which ends with fields without an end."""
        await line.write(line.head("POST", routes.HELLO.path, {"Transfer-Encoding": "chunked"}) + b"1\r\nx\r\n0\r\n")
        async with asyncio.timeout(STALL_S):
            while True:
                await line.write(b"X: %s\r\n" % (b"x" * 1_000))

    async def pipelined(self, line: Line) -> None:
        """Send many requests at once, and read one answer."""
        head = line.head("POST", routes.HELLO.path, {"Content-Length": "0"})
        await line.write(head * 1_000)
        await line.answer()
        line.close()

    async def damaged_bodies(self, line: Line) -> None:
        """Send what the fuzzer has found."""
        knock = next(self._damaged)
        await line.send("POST", knock.route.path, knock.body, {"Content-Type": knock.media})
        await line.answer()

    async def short_results(self, line: Line) -> None:
        """Let tasks run that take a microsecond."""
        await self._package(line, nothing, 20_000)

    async def left_processes(self, line: Line) -> None:
        await self._package(line, leave_process, 5)

    async def left_entries(self, line: Line) -> None:
        await self._package(line, leave_entries, 5)

    async def single_tasks(self, line: Line) -> None:
        """Let packages of one task run, so that the master knows the duration of none of them."""
        await self._package(line, take_5_ms, 1)

    async def large_results(self, line: Line) -> None:
        await self._package(line, return_much, 4)

    async def unfit_packages(self, line: Line) -> None:
        """End a package before a worker can run it."""
        order = self._order(RangeData(0, 1), nothing, 1_000, python="3.99")
        status, answer = await line.call(routes.START_TASKS, order)
        if status == 200:
            package_id = codec.decode(answer, routes.START_TASKS.reply).package_id
            await line.call(routes.ACKNOWLEDGE, Acknowledge(package_ids=[package_id]))

    async def _package(self, line: Line, function: Callable[[int], object], tasks: int) -> None:
        """Start a package, wait until it ends, and acknowledge it."""
        status, answer = await line.call(routes.START_TASKS, self._order(RangeData(0, 1), function, tasks))
        if status != 200:
            return
        package_id = codec.decode(answer, routes.START_TASKS.reply).package_id
        if function is nothing:
            self._flood = package_id
            self._flooding.set()
        cursor, until_s = 0, time.monotonic() + HOLD_S
        while time.monotonic() < until_s:
            status, answer = await line.call(routes.AWAIT_TASKS, self._await(package_id, cursor))
            if status != 200:
                continue
            news = codec.decode(answer, routes.AWAIT_TASKS.reply).packages
            if not news or news[0].state != "running":
                break
            cursor = news[0].cursor
        await line.call(routes.ACKNOWLEDGE, Acknowledge(package_ids=[package_id]))


async def main(endpoint: str, token: str) -> None:
    attacker = Attacker(endpoint, token)
    loop = asyncio.get_running_loop()

    def report() -> None:
        if not sys.stdin.readline():
            os._exit(0)
        print(json.dumps({trick.__name__: attacker.done[trick.__name__] for trick in attacker.tricks}), flush=True)

    # A process with this policy runs only while no other one wants its processor. One that is merely nice keeps each
    # processor that it has for some milliseconds, also while others want it.
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    loop.add_reader(sys.stdin.fileno(), report)
    await attacker.run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
