"""A disk without room: callers are told to try again, the log says so once, and all goes on when there is room."""

import errno
import logging
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from cloudpar_master.server import failure_log
from cloudpar_master.server.failure_log import REPEAT_S, RETRY_S, FailureLog
from cloudpar_protocol import codec, routes
from cloudpar_protocol.client_messages import StartTasksReply

from .served import Served, decoded, error, publication, retrieval, start_tasks

HEADERS = {"authorization": "Bearer user", "content-type": codec.MSGPACK}


@pytest.fixture
def full(served: Served) -> Iterator[Served]:
    """Its database may not grow by a page."""
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


def test_a_result_that_was_refused_is_kept_when_there_is_room(full: Served) -> None:
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


def test_a_full_disk_is_logged_once_a_minute_and_other_failures_each_time(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([1_000.0, 1_001.0, 1_000.0 + REPEAT_S])
    monkeypatch.setattr(failure_log, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    log = FailureLog()
    full = OSError(errno.ENOSPC, "No space left on device")
    for _ in range(2):
        assert log.note(ExceptionGroup("two packages", [KeyError("a"), full]), "a tick failed") is not None
    assert len(caplog.records) == 1
    for _ in range(2):
        assert log.note(KeyError("a"), "a tick failed") is None
    assert [record.getMessage() for record in caplog.records[1:]] == ["a tick failed"] * 2
    assert log.note(full, "a tick failed") is not None
    assert len(caplog.records) == 4


def test_a_locked_database_is_no_full_disk(tmp_path: Path) -> None:
    held, other = (sqlite3.connect(tmp_path / "db", isolation_level=None, timeout=0) for _ in range(2))
    held.execute("BEGIN EXCLUSIVE")
    with pytest.raises(sqlite3.OperationalError, match="locked") as caught:
        other.execute("BEGIN EXCLUSIVE")
    assert failure_log.unwritable(caught.value) is None
    held.close()
    other.close()
