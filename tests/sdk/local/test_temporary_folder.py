import fcntl
import os
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from cloudpar._local.temporary_folder import TemporaryFolder, sweep
from cloudpar_master.server.data_folder import DataFolder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_temporary_folder_is_removed_with_its_owner(place: Path) -> None:
    folder = TemporaryFolder()
    (folder.path / "data").write_text("x")
    assert folder.path.parent == place
    folder.close()
    assert list(place.iterdir()) == []


def test_folders_of_killed_processes_are_removed_by_a_later_one(place: Path) -> None:
    folder = TemporaryFolder()
    pid = os.fork()
    if not pid:
        TemporaryFolder()
        os._exit(0)
    os.waitpid(pid, 0)
    (place / "cloudpar-of-another-user").mkdir()
    assert len(list(place.iterdir())) == 3
    sweep()
    assert sorted(place.iterdir()) == sorted([place / "cloudpar-of-another-user", folder.path])
    folder.close()


def test_a_data_folder_of_a_master_that_is_stopped_is_not_swept_even_if_its_name_is_like_a_pools(place: Path) -> None:
    data = DataFolder(place / "cloudpar-data")
    data.close()
    sweep()
    assert (place / "cloudpar-data").exists()


def test_a_pool_that_starts_at_the_same_moment_does_not_remove_the_folder(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other pool looks for folders of killed processes when this one has made its lock file, and not locked it."""
    flock = fcntl.flock

    def flock_late(descriptor: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        sweep()
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock_late)
    with closing(TemporaryFolder()) as folder:
        assert list(place.iterdir()) == [folder.path]
        sweep()
        assert folder.path.is_dir()
