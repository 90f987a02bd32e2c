"""Which process belongs to which executor."""

import os
import subprocess
from pathlib import Path

import pytest

from cloudpar_worker.shell import process_tree
from cloudpar_worker.shell.process_tree import ProcessTree, living

SHELL = ["sh", "-c", "sleep 60 & echo $!; wait"]


def test_new_descendants_are_found() -> None:
    mine = ProcessTree()
    others = set(mine.descendants([os.getpid()]).get(os.getpid(), []))  # started by other tests in this process
    with subprocess.Popen(SHELL, stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdout
        sleeper = int(shell.stdout.readline())
        assert set(mine.descendants([os.getpid()])[os.getpid()]) == {shell.pid, sleeper} | others
        assert mine.most_bytes(os.getpid(), living([shell.pid, sleeper])) > 1 << 16
        assert ProcessTree().descendants([shell.pid]) == {shell.pid: [sleeper]}
        os.kill(sleeper, 9)
    subprocess.run(["/bin/true"], check=True)  # a new process, so that the next call looks again
    assert not {shell.pid, sleeper} & set(mine.descendants([os.getpid()]).get(os.getpid(), []))


def test_while_no_process_started_none_is_examined(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    load = tmp_path / "loadavg"
    load.write_text("0.00 0.00 0.00 1/99 4321\n")
    monkeypatch.setattr(process_tree, "_LOAD", load)
    mine = ProcessTree()
    found = dict(mine.descendants([os.getpid()]))
    monkeypatch.setattr(os, "listdir", lambda _: pytest.fail("looked"))
    assert mine.descendants([os.getpid()]) == found
