"""Files are removed in a thread, so that requests do not wait for it."""

import errno
import os
from pathlib import Path

import pytest

from cloudpar_master.adapters.embedded.file_remover import FileRemover


@pytest.fixture
def remover(tmp_path: Path) -> FileRemover:
    left = tmp_path / ".waste" / "0" / "left.blob"
    left.parent.mkdir(parents=True)
    left.touch()
    return FileRemover(tmp_path / ".waste")


def test_files_that_a_crash_left_are_removed_at_the_start(tmp_path: Path, remover: FileRemover) -> None:
    del remover
    assert not list(tmp_path.rglob("*.blob"))


def test_a_removed_file_is_moved_aside_at_once_and_deleted_by_a_thread(
    tmp_path: Path, remover: FileRemover, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remover, "_start", lambda: None)
    (tmp_path / "results" / "lease").mkdir(parents=True)
    for place in ("results/lease/0.blob", "data.blob"):
        (tmp_path / place).touch()
    remover.remove(tmp_path / "results")
    remover.remove(tmp_path / "data.blob")
    remover.remove(tmp_path / "absent.blob")
    assert [path.name for path in tmp_path.iterdir()] == [".waste"]
    assert len(list((tmp_path / ".waste").iterdir())) == 2
    remover.remove_next()
    remover.remove_next()
    assert not list((tmp_path / ".waste").iterdir())


def test_a_failing_disk_does_not_end_the_thread(
    tmp_path: Path, remover: FileRemover, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Path) -> bool:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(remover, "_start", lambda: None)
    (tmp_path / "data.blob").touch()
    remover.remove(tmp_path / "data.blob")
    monkeypatch.setattr(Path, "is_dir", fail)
    remover.remove_next()
