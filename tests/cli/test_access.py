import json
from pathlib import Path

import pytest

from cloudpar.cli.access import connect_admin, connect_user
from cloudpar.cli.data_folder import default_folder, read_connection
from cloudpar.errors import ConfigurationError

pytestmark = pytest.mark.usefixtures("unconfigured")

FILE = {"endpoint": "http://127.0.0.1:1", "token": "user", "worker_token": "worker", "admin_token": "admin"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "connection.json").write_text(json.dumps(FILE))
    return tmp_path


def test_the_default_folder_is_where_such_data_belongs(tmp_path: Path) -> None:
    assert default_folder({}) == tmp_path / "home" / ".local" / "share" / "cloudpar"
    assert default_folder({"XDG_DATA_HOME": "/x"}) == Path("/x/cloudpar")


def test_a_connection_file_is_read(folder: Path) -> None:
    assert read_connection(folder).admin_token == "admin"


def test_a_folder_without_a_connection_file_names_the_fix(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no .*connection.json: start a master with `cloudpar up --data"):
        read_connection(tmp_path)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"endpoint": 1}', "\xff"])
def test_a_broken_connection_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "connection.json").write_text(text, encoding="latin-1")
    with pytest.raises(ConfigurationError, match="is not what a master wrote"):
        read_connection(tmp_path)


def test_options_come_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDPAR_ENDPOINT", "http://environment")
    monkeypatch.setenv("CLOUDPAR_TOKEN", "environment")
    assert connect_user("http://option/", "option", None).endpoint == "http://option"
    assert connect_user(None, None, None).endpoint == "http://environment"


def test_a_named_folder_comes_before_the_environment(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("CLOUDPAR_ENDPOINT", "http://environment")
    monkeypatch.setenv("CLOUDPAR_TOKEN", "environment")
    assert connect_user(None, None, folder).endpoint == FILE["endpoint"]
    assert connect_admin("http://environment", None, folder).endpoint == FILE["endpoint"]


def test_without_anything_it_is_the_default_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for connect in (connect_user, connect_admin):
        with pytest.raises(ConfigurationError, match=r"home/\.local/share/cloudpar"):
            connect(None, None, None)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (tmp_path / "cloudpar").mkdir()
    (tmp_path / "cloudpar" / "connection.json").write_text(json.dumps(FILE))
    assert connect_user(None, None, None).endpoint == FILE["endpoint"]
    assert connect_admin(None, None, None).endpoint == FILE["endpoint"]
    for connect in (connect_user, connect_admin):
        assert connect("local", "a token", None).endpoint == FILE["endpoint"]


def test_an_error_names_the_missing_half_of_an_operators_access() -> None:
    with pytest.raises(ConfigurationError, match="no admin token: add --admin-token"):
        connect_admin("http://option", None, None)
    with pytest.raises(ConfigurationError, match="no endpoint: add --endpoint"):
        connect_admin(None, "option", None)
    assert connect_admin("http://option", "option", None).endpoint == "http://option"
