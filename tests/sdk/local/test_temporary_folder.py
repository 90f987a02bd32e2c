import os
import tempfile
from pathlib import Path

import pytest

from cloudpar._local.temporary_folder import TemporaryFolder, sweep


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_it_goes_with_its_owner(place: Path) -> None:
    folder = TemporaryFolder()
    (folder.path / "data").write_text("x")
    assert folder.path.parent == place
    folder.close()
    assert list(place.iterdir()) == []


def test_what_killed_processes_left_is_swept_up(place: Path) -> None:
    folder = TemporaryFolder()
    pid = os.fork()
    if not pid:
        TemporaryFolder()
        os._exit(0)
    os.waitpid(pid, 0)
    (place / "cloudpar-of-somebody-else").mkdir()
    assert len(list(place.iterdir())) == 3
    sweep()
    assert sorted(place.iterdir()) == sorted([place / "cloudpar-of-somebody-else", folder.path])
    folder.close()
