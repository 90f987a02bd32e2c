"""A data folder goes from today's master back to the last release, and forward again, while packages run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cloudpar import Pool
from support.books import close_books
from support.up import Up
from system import earlier_release
from system.mixture import Mixture, unpack

LAST = "0.3.0"
"""The last release. Its databases have today's format."""

FILL_S = 100.0


@pytest.mark.timeout(300)
def test_packages_survive_the_way_back_to_the_last_release_and_forward_again(tmp_path: Path) -> None:
    """One package has ended unread, one runs, one waits; the last release finishes the second and is then killed."""
    old = unpack(LAST, tmp_path / "release")
    mixture = Mixture(old, old, old)
    python = mixture.interpreter(tmp_path / "interpreters")
    data, gate = tmp_path / "data", tmp_path / "gate"
    filled = subprocess.run(
        [sys.executable, "-P", earlier_release.__file__, str(data), str(gate)],
        capture_output=True, text=True, check=False, timeout=FILL_S,
    )  # fmt: skip
    assert filled.returncode == 0, filled.stderr
    printed = json.loads(filled.stdout)
    token, packages = printed["token"], printed["packages"]
    gate.touch()
    with Up(data, workers=1, program=[str(python), "-P", "-m", "cloudpar"]) as back:
        assert {each.name: each.granted_us for each in back.accounts()} == {
            each["name"]: each["granted_us"] for each in printed["accounts"]["accounts"]
        }
        with Pool(back.endpoint, token, progress=False) as pool:
            assert pool.attach(packages["running"]).results() == [number**2 for number in range(earlier_release.TASKS)]
        back.process.kill()
    mixture.check(tmp_path / "interpreters")
    with Up(data, workers=2) as up:
        books = {name: close_books(up, token, packages[name]) for name in ("ended", "waiting")}
        assert {name: each.last.progress.charged_us for name, each in books.items()} == {
            name: each.execute_us for name, each in books.items()
        }
        assert all(not each.reserved_us for each in up.accounts())
        with Pool(up.endpoint, token, progress=False) as pool:
            assert pool.attach(packages["ended"]).results() == [
                bytes([number]) * 2 * earlier_release.DATA_BYTES for number in range(earlier_release.TASKS)
            ]
            assert pool.attach(packages["waiting"]).results() == [number**2 for number in range(earlier_release.TASKS)]
