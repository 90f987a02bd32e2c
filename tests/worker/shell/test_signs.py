"""The files by which a worker shows its host whether it reaches the master, and whether it has work."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cloudpar_worker.shell import signs
from cloudpar_worker.shell.signs import Signs
from support.leases import lease_of
from support.running_agent import RunningAgent
from support.waiting import until
from worker.scripted_master import ScriptedMaster

LONG_AGO_S = 1_000.0


def is_fresh(file: Path) -> bool:
    """Whether a file was touched, and not only before `age`."""
    return file.exists() and file.stat().st_mtime > LONG_AGO_S


def age(file: Path) -> None:
    os.utime(file, (LONG_AGO_S, LONG_AGO_S))


def test_an_idle_worker_shows_only_that_the_master_answers(
    master: ScriptedMaster, start_agent: Callable[..., RunningAgent], tmp_path: Path
) -> None:
    start_agent(signs=str(tmp_path))
    until((tmp_path / "heard").exists)
    age(tmp_path / "heard")
    until(lambda: is_fresh(tmp_path / "heard"))
    assert not (tmp_path / "leased").exists()


def test_a_worker_with_a_lease_shows_it_until_its_end(
    master: ScriptedMaster, start_agent: Callable[..., RunningAgent], tmp_path: Path
) -> None:
    start_agent(signs=str(tmp_path))
    gate, leased = tmp_path / "gate", tmp_path / "leased"
    gate.touch()

    def wait(number: int, name: str = str(gate)) -> int:
        while os.path.exists(name):  # noqa: PTH110 - a task, which imports little
            pass
        return number

    lease = lease_of(wait, 1)
    master.hand_out(lease)
    for _ in range(2):  # also while nothing happens but the time passing
        until(lambda: is_fresh(leased))
        age(leased)
    gate.unlink()
    master.wait(lambda: master.closed(lease.lease_id))


def test_a_file_is_touched_once_in_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Signs(str(tmp_path))
    shown.leased()
    age(tmp_path / "leased")
    shown.leased()
    assert not is_fresh(tmp_path / "leased")
    monkeypatch.setattr(signs, "_EVERY_S", 0.0)
    shown.leased()
    assert is_fresh(tmp_path / "leased")


def test_a_folder_that_is_gone_stops_no_task(tmp_path: Path) -> None:
    shown = Signs(str(tmp_path / "gone"))
    shown.heard()
    shown.leased()
    Signs(None).heard()
