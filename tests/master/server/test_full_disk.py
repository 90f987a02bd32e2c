"""A full disk: callers learn to try again, the log says so once, and all goes on when there is room."""

import errno
import logging
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from cloudpar_master.server import failure_log, storage_state
from cloudpar_master.server.failure_log import REPEAT_S, RETRY_S, FailureLog
from cloudpar_master.server.storage_state import KEPT_S, StorageState
from cloudpar_master.services.dispatcher import Dispatcher
from cloudpar_protocol import codec, routes
from cloudpar_protocol.client_messages import AwaitTasksReply, StartTasksReply
from cloudpar_protocol.payloads import Unwritable
from cloudpar_protocol.worker_messages import ExtendLeases, LeaseRef

from .served import Served, awaiting, decoded, error, publication, retrieval, start_tasks

HEADERS = {"authorization": "Bearer user", "content-type": codec.MSGPACK}


@pytest.fixture
def full(served: Served) -> Iterator[Served]:
    """Serve a master whose database may not grow by a page."""
    database = served.assembly.database
    (pages,) = database.execute("PRAGMA page_count").fetchone()
    database.execute(f"PRAGMA max_page_count = {pages}")
    yield served
    make_room(served)


def make_room(served: Served) -> None:
    served.assembly.database.execute("PRAGMA max_page_count = 1000000")


def start(served: Served, number: int) -> codec.ErrorReply | str:
    message = start_tasks(f"{number}", tasks=100)
    answer = served.send("POST", routes.START_TASKS.path, codec.encode(message), HEADERS)
    return decoded(answer, StartTasksReply).package_id if answer.status == 200 else error(answer)


def until_full(served: Served) -> codec.ErrorReply:
    for number in range(1_000):
        reply = start(served, number)
        if not isinstance(reply, str):
            return reply
    raise AssertionError("the database still grows")


def test_a_full_database_refuses_with_503_and_logs_one_line(full: Served, caplog: pytest.LogCaptureFixture) -> None:
    refusals = [until_full(full), until_full(full), until_full(full)]
    assert {(each.code, each.retryable, each.retry_after_s) for each in refusals} == {("unavailable", True, RETRY_S)}
    assert "database or disk is full): free space" in refusals[0].message
    (line,) = caplog.records
    assert (line.levelno, line.exc_info) == (logging.WARNING, None)
    make_room(full)
    assert isinstance(start(full, 1_000), str)


def test_a_result_that_was_refused_is_taken_when_there_is_room(full: Served) -> None:
    make_room(full)
    package_id = full.call("user", routes.START_TASKS, start_tasks("key", tasks=1)).package_id
    (lease,) = full.call("worker", routes.RETRIEVE_TASKS, retrieval()).leases
    database = full.assembly.database
    (pages,) = database.execute("PRAGMA page_count").fetchone()
    database.execute(f"PRAGMA max_page_count = {pages}")
    until_full(full)
    done = publication(lease)
    large = codec.encode(done).replace(b"\xc4\x05value", b"\xc5\x70\x00" + bytes(0x7000))
    headers = HEADERS | {"authorization": "Bearer worker"}
    assert full.send("POST", routes.PUBLISH_RESULTS.path, large, headers).status == 503
    make_room(full)
    assert full.send("POST", routes.PUBLISH_RESULTS.path, large, headers).status == 200
    assert full.status(package_id).progress.done == 1


def heard(served: Served, package_id: str, *, reads: bool) -> AwaitTasksReply | codec.ErrorReply:
    message = replace(awaiting(package_id), unwritable=reads)
    answer = served.send("POST", routes.AWAIT_TASKS.path, codec.encode(message), HEADERS)
    return decoded(answer, AwaitTasksReply) if answer.status == 200 else error(answer)


def test_an_await_on_a_full_disk_says_so_to_clients_that_read_it_and_refuses_others(
    full: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_room(full)
    package_id = full.call("user", routes.START_TASKS, start_tasks("key", tasks=1)).package_id
    disk_is_full = sqlite3.OperationalError("database or disk is full")
    disk_is_full.sqlite_errorcode = sqlite3.SQLITE_FULL

    def perform(*_: object) -> None:
        raise disk_is_full

    with monkeypatch.context() as patch:
        patch.setattr(Dispatcher, "steps", perform)
        refused, reported = heard(full, package_id, reads=False), heard(full, package_id, reads=True)
    assert isinstance(refused, codec.ErrorReply)
    assert refused.code == "unavailable"
    assert isinstance(reported, AwaitTasksReply)
    assert (reported.packages, reported.retry_after_s) == ([], RETRY_S)
    assert reported.unwritable is not None
    assert "cannot write to its data folder (database or disk is full): free space" in reported.unwritable.why
    assert reported.unwritable.errno == errno.ENOSPC


def test_a_report_is_passed_on_to_clients_until_it_is_old(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1_000.0
    monkeypatch.setattr(storage_state, "time", SimpleNamespace(monotonic=lambda: now_s))
    package_id = served.call("user", routes.START_TASKS, start_tasks("key", tasks=1)).package_id
    (lease,) = served.call("worker", routes.RETRIEVE_TASKS, retrieval()).leases
    report = Unwritable("a worker cannot write results", errno.EROFS)
    leases = [LeaseRef(**lease.identity())]
    served.call("worker", routes.EXTEND_LEASES, ExtendLeases(worker_id="w", leases=leases, unwritable=report))
    now_s += KEPT_S - 1.0
    reported = heard(served, package_id, reads=True)
    assert isinstance(reported, AwaitTasksReply)
    assert (len(reported.packages), reported.unwritable) == (1, report)
    now_s += 1.0
    reported = heard(served, package_id, reads=True)
    assert isinstance(reported, AwaitTasksReply)
    assert reported.unwritable is None


@pytest.mark.parametrize(
    ("number", "fix"),
    [
        (errno.EMFILE, "ulimit -n"), (errno.EROFS, "for writing"), (errno.EDQUOT, "quota"), (errno.EFBIG, "ulimit -f"),
        (errno.EIO, "dmesg"), (errno.ESTALE, "again"), (errno.EACCES, "chown"), (errno.EPERM, "chown"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_fix_of_each_reason(number: int, fix: str) -> None:
    storage = StorageState()
    refusal = FailureLog(storage).note(OSError(number, "what the system says"), "a request failed")
    assert refusal is not None
    assert fix in str(refusal)
    assert storage.unwritable is not None
    assert storage.unwritable.errno == number


def test_a_full_disk_is_logged_once_a_minute_and_other_failures_each_time(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([1_000.0, 1_001.0, 1_000.0 + REPEAT_S])
    monkeypatch.setattr(failure_log, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    log = FailureLog(StorageState())
    full = OSError(errno.ENOSPC, "No space left on device")
    for _ in range(2):
        assert log.note(ExceptionGroup("two packages", [KeyError("a"), full]), "a tick failed") is not None
    assert len(caplog.records) == 1
    for _ in range(2):
        assert log.note(KeyError("a"), "a tick failed") is None
    assert [record.getMessage() for record in caplog.records[1:]] == ["a tick failed"] * 2
    assert log.note(full, "a tick failed") is not None
    assert len(caplog.records) == 4


def test_a_locked_database_does_not_count_as_a_full_disk(tmp_path: Path) -> None:
    held, other = (sqlite3.connect(tmp_path / "db", isolation_level=None, timeout=0) for _ in range(2))
    held.execute("BEGIN EXCLUSIVE")
    with pytest.raises(sqlite3.OperationalError, match="locked") as caught:
        other.execute("BEGIN EXCLUSIVE")
    assert failure_log.unwritable(caught.value) is None
    held.close()
    other.close()
