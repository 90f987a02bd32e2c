"""A master starts only with the secret that its database depends on, or else names the fix."""

import secrets
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cloudpar_master.adapters.embedded.database import Database
from cloudpar_master.server.data_folder import DataFolderError
from cloudpar_master.server.secret import key_secret
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import Hello
from support.master_process import Master, connection_of, run

from .served import Served


def key(folder: Path, *, new_secret: bool = False) -> bytes:
    """Start a master, and return the key of its default account."""
    served = Served(folder, new_secret=new_secret)
    try:
        made = served.call("user", routes.HELLO, Hello()).seal_key
    finally:
        served.close()
    assert made is not None
    return made


def remove(secret: Path) -> None:
    secret.unlink()


def empty(secret: Path) -> None:
    secret.write_bytes(b"")


def replace(secret: Path) -> None:
    secret.write_bytes(secrets.token_bytes(32))


@pytest.mark.parametrize("lose", [remove, empty, replace])
def test_a_master_without_its_secret_does_not_start(tmp_path: Path, lose: Callable[[Path], None]) -> None:
    before, secret = key(tmp_path), tmp_path / "secret"
    saved = secret.read_bytes()
    lose(secret)
    left = secret.read_bytes() if secret.exists() else None
    for _ in range(2):
        with pytest.raises(DataFolderError, match=r"/secret is .*put back.*--new-secret.*another folder by --data"):
            key(tmp_path)
    assert (secret.read_bytes() if secret.exists() else None) == left
    secret.write_bytes(saved)
    assert key(tmp_path) == before


@pytest.mark.parametrize("lose", [remove, empty, replace])
def test_a_master_makes_a_new_secret_if_the_operator_wants_one(tmp_path: Path, lose: Callable[[Path], None]) -> None:
    before = key(tmp_path)
    lose(tmp_path / "secret")
    after = key(tmp_path, new_secret=True)
    assert after != before
    assert key(tmp_path, new_secret=True) == after, "the option may be given again, such as after a crash"
    assert key(tmp_path) == after


def test_a_secret_that_is_not_lost_is_kept_although_a_new_one_is_allowed(tmp_path: Path) -> None:
    assert key(tmp_path) == key(tmp_path, new_secret=True) == key(tmp_path)


def test_a_database_that_is_lost_needs_no_secret(tmp_path: Path) -> None:
    key(tmp_path)
    secret = (tmp_path / "secret").read_bytes()
    for path in tmp_path.glob("master.sqlite*"):
        path.unlink()
    key(tmp_path)
    assert (tmp_path / "secret").read_bytes() == secret


def test_a_lost_secret_does_no_harm_if_no_account_has_a_key(tmp_path: Path) -> None:
    """A power cut in the first moments may lose it."""
    Served(tmp_path).close()
    (tmp_path / "secret").unlink()
    key(tmp_path)


def test_a_database_without_a_mark_gets_one(tmp_path: Path) -> None:
    """Earlier releases, which knew no marks, left such databases."""
    before, secret = key(tmp_path), tmp_path / "secret"
    forget_mark(tmp_path)
    assert key(tmp_path) == before
    replace(secret)
    with pytest.raises(DataFolderError, match="is not the secret that"):
        key(tmp_path)


def test_a_database_without_a_mark_needs_a_secret_if_it_has_keys(tmp_path: Path) -> None:
    key(tmp_path)
    forget_mark(tmp_path)
    (tmp_path / "secret").unlink()
    with pytest.raises(DataFolderError, match="is lost or broken"):
        key(tmp_path)


def forget_mark(folder: Path) -> None:
    database = Database(folder / "master.sqlite")
    database.execute("DROP TABLE secret_mark")
    database.close()


def test_g20_the_secret_is_in_no_table(tmp_path: Path) -> None:
    """Nor is what encrypts keys, or signs links: the mark is of no use for either."""
    key(tmp_path)
    secret = (tmp_path / "secret").read_bytes()
    for path in tmp_path.glob("master.sqlite*"):
        content = path.read_bytes()
        assert secret not in content
        assert key_secret(secret) not in content


def test_a_running_master_does_not_write_a_lost_secret_again(tmp_path: Path) -> None:
    served = Served(tmp_path)
    (tmp_path / "secret").unlink()
    served.call("user", routes.HELLO, Hello())
    assert not (tmp_path / "secret").exists()
    served.close()


def test_a_process_reports_a_lost_secret_in_one_line(tmp_path: Path) -> None:
    with Master(tmp_path) as master:
        token = connection_of(tmp_path)["token"]
        before = master.call(token, routes.HELLO, Hello()).seal_key
        master.end()
    saved = shutil.move(tmp_path / "secret", tmp_path / "saved")
    ended = run(tmp_path, "--port", "0")
    assert (ended.returncode, ended.stdout, ended.stderr.count(b"\n")) == (1, b"", 1)
    assert f"cloudpar master: {tmp_path / 'secret'} is lost or broken".encode() in ended.stderr
    with Master(tmp_path, "--port", "0", "--new-secret") as master:
        assert master.call(token, routes.HELLO, Hello()).seal_key != before
        code, said = master.end()
    assert (code, said.count(b"\n")) == (0, 1)
    assert b"was lost" in said
    shutil.move(saved, tmp_path / "secret")
    assert b"is not the secret that" in run(tmp_path, "--port", "0").stderr
