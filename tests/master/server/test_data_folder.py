import errno
import json
import os
import stat
from pathlib import Path

import pytest
from msgspec.structs import replace

from cloudpar_master.server.data_folder import Connection, DataFolder, DataFolderError

NOTHING_GIVEN = Connection(endpoint="http://127.0.0.1:1", token="", worker_token="", admin_token="")


def test_a_new_data_folder_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "new" / "data"
    DataFolder(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o777, 0o1777, 0o702])
def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    (tmp_path / "connection.json").touch()
    tmp_path.chmod(mode)
    with pytest.raises(DataFolderError, match="chmod go-w"):
        DataFolder(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == mode
    assert not (tmp_path / "lock").exists()
    tmp_path.chmod(0o755)
    DataFolder(tmp_path).close()


def test_an_empty_folder_is_closed_to_others(tmp_path: Path) -> None:
    tmp_path.chmod(0o775)
    DataFolder(tmp_path).close()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(DataFolderError, match=r"belongs to user .*chown"):
        DataFolder(tmp_path)


def test_a_planted_link_does_not_lead_the_tokens_to_another_file(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("precious")
    (tmp_path / "connection.new").symlink_to(other)
    folder = DataFolder(tmp_path)
    folder.connect(NOTHING_GIVEN)
    folder.close()
    assert other.read_text() == "precious"


def test_a_master_that_starts_again_on_a_full_disk_keeps_its_connection_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    folder = DataFolder(tmp_path)
    first = folder.connect(NOTHING_GIVEN)
    monkeypatch.setattr(os, "fsync", full)
    assert folder.connect(NOTHING_GIVEN) == first
    with pytest.raises(DataFolderError, match="No space left"):
        folder.connect(replace(NOTHING_GIVEN, token="another"))
    folder.close()


def test_tokens_are_made_and_kept(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    first = folder.connect(NOTHING_GIVEN)
    tokens = {first.token, first.worker_token, first.admin_token}
    assert len(tokens) == 3
    assert min(map(len, tokens)) >= 43
    folder.close()

    folder = DataFolder(tmp_path)
    moved = Connection(endpoint="http://127.0.0.1:2", token="", worker_token="given", admin_token="")
    second = folder.connect(moved)
    assert second == Connection(
        endpoint=moved.endpoint, token=first.token, worker_token="given", admin_token=first.admin_token
    )
    assert json.loads((tmp_path / "connection.json").read_bytes()) == {
        "endpoint": second.endpoint,
        "token": second.token,
        "worker_token": "given",
        "admin_token": second.admin_token,
    }
    folder.close()


def test_tokens_that_an_operator_empties_are_made_again(tmp_path: Path) -> None:
    """The user's token stays, so its account remains the default account."""
    folder = DataFolder(tmp_path)
    first = folder.connect(NOTHING_GIVEN)
    folder.close()
    file = tmp_path / "connection.json"
    file.write_text(json.dumps(json.loads(file.read_bytes()) | {"worker_token": "", "admin_token": ""}))
    folder = DataFolder(tmp_path)
    second = folder.connect(NOTHING_GIVEN)
    folder.close()
    assert second.token == first.token
    assert len({first.worker_token, first.admin_token, second.worker_token, second.admin_token, ""}) == 5


def test_a_secret_that_was_made_is_kept(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    assert folder.kept_secret() is None
    assert folder.make_secret() == folder.kept_secret()
    assert len(folder.make_secret()) == 32
    folder.close()


def test_a_second_master_on_a_data_folder_is_refused(tmp_path: Path) -> None:
    first = DataFolder(tmp_path)
    with pytest.raises(DataFolderError, match=r"another master.*choose another folder"):
        DataFolder(tmp_path)
    first.close()
    DataFolder(tmp_path).close()


def test_a_file_system_without_locks_is_named_with_the_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(DataFolderError, match=r"cannot be locked \(No locks available\): choose one on a local disk"):
        DataFolder(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"endpoint": 1}', b"\xff"])
def test_an_unreadable_connection_file_is_named_with_the_fix(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "connection.json").write_bytes(content)
    folder = DataFolder(tmp_path)
    with pytest.raises(DataFolderError, match=r"connection\.json is not what a master wrote: .* remove it"):
        folder.connect(NOTHING_GIVEN)
    assert (tmp_path / "connection.json").read_bytes() == content
    folder.close()


def test_a_path_that_cannot_be_a_folder_is_named_with_the_fix(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(DataFolderError, match=r"cannot be used \(.*\): choose another folder"):
            DataFolder(path)


def test_a_connection_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    (tmp_path / "connection.new").mkdir()
    with pytest.raises(DataFolderError, match=r"connection\.json cannot be written"):
        folder.connect(NOTHING_GIVEN)
    folder.close()
