"""A disk that fails or is full: each refusal says why, and requests that are repeated later lose and double nothing."""

import errno
import json
import logging
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import TypeVar

import pytest
from msgspec import Struct

from cloudpar_master.core import effects
from cloudpar_master.server.failure_log import RETRY_S
from cloudpar_master.services.steps import finish
from cloudpar_protocol import routes
from cloudpar_protocol.account_messages import Account, CreateAccount, ListAccounts
from cloudpar_protocol.client_messages import Acknowledge, ListPackages, PrepareUploads, StartTasks, Upload
from cloudpar_protocol.payloads import BlobData, BlobRef, Link, TaskCode, TaskResult
from cloudpar_protocol.routes import ReplyT, RequestT, Route
from cloudpar_protocol.worker_messages import (
    ExtendLeases,
    Lease,
    LeaseRef,
    PrepareResult,
    PrepareResults,
    Publication,
    PublishResults,
)
from support.asgi import Answer, Exchange
from support.disk import Disk

from .served import Served, awaiting, decoded, error, retrieval, start_tasks

T = TypeVar("T")

CODE, VALUE = b"task code", b"a large result"
DATA = b"ab" + struct.pack("<3Q", 0, 1, 2)
"""Two items of one byte, and the table of their offsets."""
REASONS = {errno.ENOSPC: ("disk is full", "No space left"), errno.EIO: ("disk I/O error", "Input/output error")}


class Countdown:
    """Lets each operation of a disk fail in a `with` block, except the first ones."""

    def __init__(self) -> None:
        self._left: int | None = None
        self.failed = False

    def __call__(self) -> bool:
        """Whether the next operation fails."""
        if self._left is None:
            return False
        self._left -= 1
        self.failed = self.failed or self._left < 0
        return self._left < 0

    @contextmanager
    def after(self, operations: int) -> Iterator[None]:
        """Let all operations fail that come after this many others."""
        self._left, self.failed = operations, False
        try:
            yield
        finally:
            self._left = None


class Story:
    """The life of a package and of an account, in which each request is first sent once for each operation that fails.

    Attributes:
        refused: How many requests were refused.
        late_s: How much later than now it is for the master, in seconds.
    """

    def __init__(self, served: Served, countdown: Countdown, reasons: tuple[str, ...]) -> None:
        self.served, self.countdown, self.reasons = served, countdown, reasons
        self.refused = 0
        self.late_s = 0.0

    def done(self, send: Callable[[], Answer]) -> Answer:
        """Send a request again and again, while first its first operation fails, then its second one, and so on."""
        for operations in count():
            with self.countdown.after(operations):
                answer = send()
            if answer.status == 200:
                if len(answer.body) == int(answer.headers["content-length"]):
                    return answer
                continue  # a download that was cut off: the server closes the connection
            refusal = error(answer)
            assert self.countdown.failed, refusal
            assert (answer.status, refusal.retryable, refusal.retry_after_s) == (503, True, RETRY_S), refusal
            assert any(reason in refusal.message for reason in self.reasons)
            self.refused += 1
        raise AssertionError

    def call(self, token: str, route: Route[RequestT, ReplyT], request: Struct) -> ReplyT:
        return decoded(self.done(lambda: self.served.run(self.served.exchange(token, route, request))), route.reply)

    def transfer(self, link: Link, body: bytes = b"") -> bytes:
        return self.done(lambda: self.served.run(Exchange(link.method, link.url, body))).body

    def tick(self) -> None:
        """Let the timer work once, as after each request. It repeats what has failed before."""
        for operations in count():
            self.late_s += effects.RETRY_S
            try:
                with self.countdown.after(operations):
                    finish(self.served.assembly.tick())
                    return
            except Exception as error:  # noqa: BLE001 - the process passes every one on
                known = self.served.assembly.failures.note(error, "a tick failed")
            assert known is not None

    def upload(self, kind: str, body: bytes) -> BlobRef:
        wanted = Upload(kind=kind, size=len(body), crc32=zlib.crc32(body), hash="c" * 64)  # type: ignore[arg-type]
        (prepared,) = self.call("user", routes.PREPARE_UPLOADS, PrepareUploads(uploads=[wanted])).uploads
        assert prepared.link is not None
        self.transfer(prepared.link, body)
        return BlobRef(prepared.key, len(body))

    def started(self) -> StartTasks:
        code, data = self.upload("code", CODE), self.upload("data", DATA)
        plain = start_tasks(tasks=2)
        return StartTasks(
            idempotency_key="key", n=2, code=TaskCode("c" * 64, blob=code), data=BlobData(data),
            python=plain.python, chunksize=2,
        )  # fmt: skip

    def published(self, lease: Lease) -> None:
        wanted = PrepareResult(
            package_id=lease.package_id, lease_id=lease.lease_id, seq=0, size=len(VALUE), crc32=zlib.crc32(VALUE)
        )
        (place,) = self.call("worker", routes.PREPARE_RESULTS, PrepareResults(results=[wanted])).results
        self.transfer(place.link, VALUE)
        results = [
            TaskResult(0, "ok", 10, data=b"value"),
            TaskResult(1, "ok", 10, blob=BlobRef(place.key, len(VALUE))),
        ]
        publication = Publication(**lease.identity(), seq=0, results=results, closes=True)
        request = PublishResults(worker_id="w", executors=1, publications=[publication])
        self.call("worker", routes.PUBLISH_RESULTS, request)


def lived(story: Story) -> None:
    """Start a package, run it, read its results, and acknowledge it."""
    package_id = story.call("user", routes.START_TASKS, story.started()).package_id
    story.tick()  # a start that was repeated leaves its chunks to the timer
    (lease,) = story.call("worker", routes.RETRIEVE_TASKS, retrieval()).leases
    for link, body in ((lease.code_link, CODE), (lease.data_link, DATA)):
        assert link is not None
        assert story.transfer(link) == body
    beat = ExtendLeases(worker_id="w", leases=[LeaseRef(**lease.identity())])
    assert [view.state for view in story.call("worker", routes.EXTEND_LEASES, beat).leases] == ["wanted"]
    story.published(lease)
    (status,) = story.call("user", routes.AWAIT_TASKS, awaiting(package_id)).packages
    assert (status.state, [result.index for result in status.results]) == ("completed", [0, 1])
    assert [story.transfer(link) for link in status.links.values()] == [VALUE]
    assert [each.state for each in story.call("user", routes.LIST_PACKAGES, ListPackages()).packages] == ["completed"]
    story.call("user", routes.ACKNOWLEDGE, Acknowledge(package_ids=[package_id]))
    story.tick()


def created(story: Story) -> Account:
    new = CreateAccount(idempotency_key="k", name="ann", token_hash="a" * 64, quota_us=5)
    return story.call("admin", routes.CREATE_ACCOUNT, new).account


@pytest.mark.parametrize("number", REASONS)
def test_each_operation_of_a_disk_may_fail_during_each_request(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    countdown = Countdown()
    Disk(tmp_path / "data", monkeypatch, number, countdown)
    with closing(Served(tmp_path / "data")) as served:
        story, clock = Story(served, countdown, REASONS[number]), served.assembly.blobs._clock
        now = clock.now
        monkeypatch.setattr(clock, "now", lambda: now() + story.late_s, raising=False)
        lived(story)
        account = created(story)
        default, ann = served.call("admin", routes.LIST_ACCOUNTS, ListAccounts()).accounts
    assert (default.spent_us, default.reserved_us, ann) == (20, 0, account)
    lines = [json.loads(line) for line in (tmp_path / "data" / "audit.jsonl").read_text().splitlines()]
    assert {line["account_id"] for line in lines if line["outcome"] == "done"} == {account.account_id}
    assert story.refused > 40
    (line,) = caplog.records  # all of them within a minute
    assert (line.levelno, line.exc_info) == (logging.WARNING, None)
