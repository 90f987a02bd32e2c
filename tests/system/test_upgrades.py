"""Today's master takes over the data folder that a killed master of any earlier release left."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cloudpar import Pool
from cloudpar_master.adapters.embedded.migrations import FORMAT, RELEASES
from support.books import close_books
from support.up import Up
from system import earlier_release
from system.mixture import LAST_OF, Mixture, unpack

FILL_S = 100.0


class Left(NamedTuple):
    """A folder that an earlier release left, and this release's Python."""

    python: Path
    folder: Path
    gate: Path
    report: dict[str, Any]


@pytest.fixture(scope="module", params=LAST_OF)
def release(request: pytest.FixtureRequest) -> str:
    """Return each release's version."""
    return str(request.param)


@pytest.fixture(scope="module")
def left(release: str, tmp_path_factory: pytest.TempPathFactory) -> Left:
    """Return the folder that this release left."""
    folder = tmp_path_factory.mktemp("upgrade")
    old = unpack(release, folder / "release")
    python = Mixture(old, old, old).interpreter(folder / "interpreters")
    data, gate = folder / "data", folder / "gate"
    command = [str(python), "-P", earlier_release.__file__, str(data), str(gate)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=FILL_S)
    assert ended.returncode == 0, ended.stderr
    return Left(python, data, gate, json.loads(ended.stdout))


def test_accounts_quotas_tokens_and_packages_of_an_earlier_release_go_on(left: Left) -> None:
    token, packages = left.report["token"], left.report["packages"]
    squares = [number**2 for number in range(earlier_release.TASKS)]
    left.gate.touch()
    with Up(left.folder, workers=2) as up:
        assert up.connection["admin_token"] == left.report["connection"]["admin_token"]
        now = {account.account_id: account for account in up.accounts()}
        for before in left.report["accounts"]["accounts"]:
            after = now.pop(before["account_id"])
            assert (after.name, after.granted_us) == (before["name"], before["granted_us"])
            assert after.spent_us >= before["spent_us"]
        assert not now
        books = {name: close_books(up, token, package_id) for name, package_id in packages.items()}
        spent_us = next(account.spent_us for account in up.accounts() if account.name == "ada")
        of_the_first_map = left.report["first_us"]
        charged_us = {name: each.last.progress.charged_us for name, each in books.items()}
        assert charged_us == {name: each.execute_us for name, each in books.items()}
        assert spent_us == of_the_first_map + sum(charged_us.values())
        with Pool(up.endpoint, token, progress=False) as pool:
            assert pool.attach(packages["ended"]).results() == [
                bytes([number]) * 2 * earlier_release.DATA_BYTES for number in range(earlier_release.TASKS)
            ]
            assert pool.attach(packages["running"]).results() == squares
            assert pool.attach(packages["waiting"]).results() == squares
            assert list(pool.map(abs, range(-3, 0))) == [3, 2, 1]


def test_the_database_is_kept_as_the_earlier_release_left_it(left: Left, release: str) -> None:
    """This runs after the test before, which converts the folder."""
    kept = {each.name for each in left.folder.glob("master.sqlite.*")}
    expected = {f"master.sqlite.format-{number}" for number, name in RELEASES.items() if name == release}
    assert kept == expected - {f"master.sqlite.format-{FORMAT}"}


def test_the_earlier_release_goes_on_with_the_copy(left: Left, tmp_path: Path) -> None:
    """docs/operations.md describes this. It runs after the tests before, too.

    A release of today's format has no copy, and goes on with the database itself.
    """
    data = tmp_path / "data"
    shutil.copytree(left.folder, data)
    for kept in data.glob("master.sqlite.*"):
        for name in ("master.sqlite-wal", "master.sqlite-shm"):
            (data / name).unlink(missing_ok=True)
        shutil.move(kept, data / "master.sqlite")
    with Up(data, workers=0, program=[str(left.python), "-P", "-m", "cloudpar"]) as up:
        names = [account.name for account in up.accounts()]
    assert names == ["default", "ada", "grace"]
