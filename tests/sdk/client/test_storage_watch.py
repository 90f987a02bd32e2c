"""What a pool does while results cannot be stored."""

import errno
import logging
import math
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from cloudpar._client import storage_watch
from cloudpar._client.failures import copied
from cloudpar._client.storage_watch import SAY_S, StorageWatch, folder_unwritable
from cloudpar.errors import CloudparError, FolderUnwritable
from cloudpar_protocol.payloads import Unwritable
from cloudpar_protocol.transport.payload_folder import PayloadFolder

FULL = Unwritable("the master's disk is full", errno.ENOSPC)
PATIENCE_S = 60.0


class Clock:
    """Stands still until a test sets it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 1_000.0
        monkeypatch.setattr(storage_watch, "time", SimpleNamespace(monotonic=lambda: self.now_s))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def own(folder: Path, packages: int) -> StorageWatch:
    return StorageWatch(PayloadFolder(str(folder)), PATIENCE_S, lambda: packages)


def test_a_full_disk_of_a_deployed_master_is_logged_once_and_waited_for(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    watch = StorageWatch(None, PATIENCE_S, lambda: 1)
    assert watch.due_s() == math.inf
    assert watch.heard(FULL, news=False) is None
    assert (caplog.records, watch.due_s()) == ([], SAY_S)
    for _ in range(3):
        clock.now_s += PATIENCE_S
        assert watch.heard(FULL, news=False) is None
    assert [each.getMessage() for each in caplog.records] == [
        "cloudpar: no result can be stored: the master's disk is full; waiting until there is room"
    ]
    watch.heard(None, news=False)
    assert caplog.records[1].getMessage() == "cloudpar: results can be stored again"


def test_results_that_arrive_restart_the_wait(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    watch = StorageWatch(None, PATIENCE_S, lambda: 1)
    for _ in range(3):
        watch.heard(FULL, news=False)
        clock.now_s += SAY_S * 2
        watch.heard(FULL, news=True)
    assert caplog.records == []


def test_packages_fail_after_the_patience_if_other_files_fill_the_pools_folder(
    clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    usage = SimpleNamespace(used=1 << 30, free=2_000_000)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    watch = own(tmp_path, packages=1)
    watch.heard(FULL, news=False)
    clock.now_s += SAY_S
    assert watch.heard(FULL, news=False) is None
    assert [each.levelno for each in caplog.records] == [logging.WARNING]
    assert watch.due_s() == PATIENCE_S - SAY_S
    clock.now_s += watch.due_s()
    error = watch.heard(FULL, news=False)
    assert isinstance(error, FolderUnwritable)
    for part in (str(tmp_path), os.strerror(errno.ENOSPC), "2.0 MB free", "TMPDIR", "buffersize=", "smaller results"):
        assert part in str(error)


@pytest.mark.parametrize(("packages", "gives_up"), [(1, True), (2, False)])
def test_packages_fail_if_their_results_fill_the_folder_and_no_other_can_be_read(
    clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packages: int, *, gives_up: bool
) -> None:
    """A second package may be read to the end, which removes its results."""
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "a").write_bytes(os.urandom(100_000))
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(used=150_000, free=0))
    watch = own(tmp_path, packages)
    watch.heard(FULL, news=False)
    clock.now_s += SAY_S
    assert (watch.heard(FULL, news=False) is not None) is gives_up


def test_a_full_folder_is_an_oserror_and_each_task_gets_a_copy(tmp_path: Path) -> None:
    error = folder_unwritable(PayloadFolder(str(tmp_path / "removed")), errno.EDQUOT)
    assert isinstance(error, OSError)
    assert isinstance(error, CloudparError)
    assert error.errno == errno.EDQUOT
    assert "its free space is unknown" in str(error)
    assert (str(copied(error)), copied(error).args) == (str(error), error.args)
