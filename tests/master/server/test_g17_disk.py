"""Guarantee 17, the master's disk: what links store is bounded, too, and a full disk stops uploads but no state."""

import asyncio
import errno
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cloudpar_master.core.policy import Policy
from cloudpar_master.ports import AccountRecord
from cloudpar_master.server import process
from cloudpar_master.server.assembly import assemble
from cloudpar_master.server.data_folder import DataFolder
from cloudpar_master.services.backend import hash_token
from cloudpar_master.services.stored_bytes import READ_S, UPLOAD_BYTES
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import PreparedUpload, PrepareUploads, Upload
from cloudpar_protocol.worker_messages import PrepareResult, PrepareResults
from support.asgi import Answer, Exchange, Message
from support.waiting import HANG_S

from .served import CONNECTION, Served, error, publication, retrieval, start_tasks

BODY = b"payload"
POLICY = Policy(stored_bytes=2 * UPLOAD_BYTES)


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[Served]:
    """Serve a master with an account "ann" beside the default one; both may store two uploads."""
    served = Served(tmp_path / "data", POLICY)
    ann = AccountRecord("ann", "ann", hash_token("ann"), "active", 10**9, 0, 0, 0.0)
    served.assembly.database.execute("INSERT INTO accounts VALUES (?, ?, ?, ?, ?, ?, ?, ?)", ann[:8])
    yield served
    served.close()


def prepare(served: Served) -> PreparedUpload:
    request = PrepareUploads(uploads=[Upload(kind="data", size=len(BODY), crc32=zlib.crc32(BODY))])
    return served.call("ann", routes.PREPARE_UPLOADS, request).uploads[0]


def put(served: Served, url: str) -> Answer:
    return served.send("PUT", url.removeprefix(CONNECTION.endpoint), BODY)


def url_of(prepared: PreparedUpload) -> str:
    assert prepared.link is not None
    return prepared.link.url


def test_g17_a_link_that_is_used_again_after_its_blob_was_deleted_counts_again(
    limited: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs, now = limited.assembly.blobs, 0.0
    links: list[str] = []
    clock = blobs._clock
    real = clock.now()
    monkeypatch.setattr(clock, "now", lambda: real + now, raising=False)
    for _ in range(3):
        prepared = prepare(limited)
        links.append(url_of(prepared))
        assert put(limited, links[-1]).status == 200
        blobs.delete(prepared.key)
        now += READ_S
    statuses = [put(limited, link).status for link in links]
    assert statuses == [200, 200, 429]
    assert put(limited, links[0]).status == 200  # it is there: a repeated upload adds nothing


class Stalled(Exchange):
    """An upload of which a part comes, and then nothing until its client hangs up."""

    async def receive(self) -> Message:
        if self._parts:
            return {"type": "http.request", "body": self._parts.pop(0), "more_body": True}
        return await super().receive()


async def _stall_many(served: Served, url: str, reached: Callable[[str], None]) -> None:
    uploads = [Stalled("PUT", url, BODY[:1]) for _ in range(100)]
    tasks = [asyncio.ensure_future(upload.run(served.app)) for upload in uploads]
    done, arriving = await asyncio.wait(tasks, timeout=HANG_S, return_when=asyncio.FIRST_COMPLETED)
    while len(done) < len(tasks) - 2:
        done, arriving = await asyncio.wait(tasks, timeout=HANG_S / 100)
    assert {task.result().status for task in done} == {429}
    assert served.assembly.blobs._reserved_bytes == len(arriving) * (len(BODY) - 1)
    for upload in uploads:
        upload.hang_up()
    await asyncio.wait(tasks)
    assert served.assembly.blobs._reserved_bytes == 0
    reached("100 uploads by one link at the same time take no more of the disk than the account may store")


def test_g17_uploads_by_one_link_at_the_same_time_count_each(limited: Served, reached: Callable[[str], None]) -> None:
    """Once, each of them reserved space, and only the first one counted: one link reserved the whole disk."""
    url = url_of(prepare(limited))
    asyncio.run(_stall_many(limited, url, reached))
    assert put(limited, url).status == 200


def test_an_upload_to_an_almost_full_disk_gets_503_with_retry_after_and_state_is_still_written(
    limited: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = prepare(limited)
    package_id = limited.call("ann", routes.START_TASKS, start_tasks("key", tasks=1)).package_id
    (lease,) = limited.call("worker", routes.RETRIEVE_TASKS, retrieval()).leases
    upload = PrepareResult(
        package_id=package_id, lease_id=lease.lease_id, seq=0, size=len(BODY), crc32=zlib.crc32(BODY)
    )
    result = limited.call("worker", routes.PREPARE_RESULTS, PrepareResults(results=[upload])).results[0]
    monkeypatch.setattr(limited.assembly.blobs, "free_bytes", lambda: 0)
    for url in (url_of(prepared), result.link.url):
        answer = put(limited, url)
        assert (answer.status, error(answer).code, error(answer).retryable) == (503, "unavailable", True)
        assert int(answer.headers["retry-after"]) > 0
        assert "free space" in error(answer).message
    limited.call("worker", routes.PUBLISH_RESULTS, publication(lease))
    monkeypatch.undo()
    assert [put(limited, url).status for url in (url_of(prepared), result.link.url)] == [200, 200]


def test_only_a_pools_own_master_keeps_no_reserve(tmp_path: Path) -> None:
    for of_pool in (False, True):
        folder = DataFolder(tmp_path / f"{of_pool}")
        assembly = assemble(folder, CONNECTION, POLICY, of_pool=of_pool)
        assert (assembly.blobs.free_bytes() is None) == of_pool
        assembly.database.close()
        folder.close()


def test_a_sweep_that_fails_is_followed_by_others(limited: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, an error of the database ended the sweeps until the next start."""
    locked = sqlite3.OperationalError("database is locked")
    locked.sqlite_errorcode = sqlite3.SQLITE_BUSY
    failures = [locked, OSError(errno.EIO, "input/output error")]
    sweeps = 0

    def sweep(_unused_s: float) -> Iterator[None]:
        nonlocal sweeps
        sweeps += 1
        if failures:
            raise failures.pop()
        raise asyncio.CancelledError
        yield

    monkeypatch.setattr(process, "SWEEP_S", 0.0)
    monkeypatch.setattr(limited.assembly.blobs, "sweep", sweep)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(process._sweep(limited.assembly))
    assert sweeps == 3
