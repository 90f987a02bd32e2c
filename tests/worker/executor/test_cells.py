"""What is left of an executor is removed, or its user is nobody's."""

import errno
import os
from pathlib import Path

import pytest

from cloudpar_worker.executor import kernel, leavings, users
from cloudpar_worker.executor.cells import Cell, Cells
from cloudpar_worker.executor.confinement import Confinement
from cloudpar_worker.executor.users import Users


def test_a_user_of_whom_something_is_left_is_for_no_zygote(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users, "FIRST", 2_000_000_000)  # no worker of this machine has these
    mine, others = Users([]), Users([])
    spoilt, clean = mine.take(), mine.take()
    mine.give_back(spoilt, spotless=False)
    mine.give_back(clean, spotless=True)
    theirs = others.take()
    assert theirs.number == clean.number
    theirs.free()
    spoilt.free()


def test_without_a_process_to_do_it_removing_waits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kernel, "adopt_orphans", lambda: None)
    monkeypatch.setattr(leavings, "end_orphans", lambda _: False)
    monkeypatch.setattr(users, "are_there", lambda _: False)
    cells = Cells(Confinement(tmp=str(tmp_path)), [])
    folder = tmp_path / "left"
    folder.mkdir()
    cells.leave(Cell(str(folder), None))

    def none_left() -> int:
        raise OSError(errno.EAGAIN, "no process")

    with monkeypatch.context() as full:
        full.setattr(os, "fork", none_left)
        cells.empty()
    assert cells.waiting
    assert folder.exists()
    cells.empty()
    assert not cells.waiting
    cells.ended(*os.wait())
    assert not cells.emptying
    assert not folder.exists()
