"""What an error quotes of a process's log."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from cloudpar._local.process_log import TAIL_BYTES, ProcessLog


def test_the_tail_is_bounded_and_says_if_there_is_none(tmp_path: Path) -> None:
    log = ProcessLog(tmp_path, "master")
    assert log.tail() == "(it left no log)"
    log.path.touch()
    assert log.tail() == "(it wrote nothing)"
    log.path.write_text("x" * TAIL_BYTES + "the end\n")
    assert log.tail().endswith("xthe end")
    assert len(log.tail()) == TAIL_BYTES - 1


def test_a_full_disk_is_named_since_the_log_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = ProcessLog(tmp_path, "master")
    assert log.full_disk() == ""
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=1000))
    assert f"the disk of {tmp_path} is full" in log.full_disk()


def test_a_folder_that_was_removed_has_no_tail(tmp_path: Path) -> None:
    log = ProcessLog(tmp_path / "removed", "master")
    assert (log.full_disk(), log.tail()) == ("", "(it left no log)")
