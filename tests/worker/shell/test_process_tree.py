"""Which process belongs to which executor."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cloudpar_worker.shell import process_tree
from cloudpar_worker.shell.process_tree import ENTRIES, ProcessTree, living

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


def test_the_agent_looks_at_some_files_of_shared_memory_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Task code may make a million files, and the agent must serve all executors. Other files count for each user."""
    seen: list[int] = []

    @contextmanager
    def endless(_: str) -> Iterator[Iterator[Any]]:
        def entries() -> Iterator[Any]:
            while True:
                seen.append(len(seen))
                yield SimpleNamespace(stat=lambda **_: SimpleNamespace(st_uid=1, st_blocks=8))

        yield entries()

    system = SimpleNamespace(f_blocks=10**6, f_bfree=0, f_frsize=4096, f_files=10**6, f_ffree=0)
    monkeypatch.setattr(os, "scandir", endless)
    monkeypatch.setattr(os, "statvfs", lambda _: system)
    monkeypatch.setattr(process_tree, "_executor_by_uid", lambda _: {1: os.getpid(), 2: os.getppid()})
    mine = ProcessTree()
    mine.descendants([os.getpid(), os.getppid()])
    assert len(seen) <= ENTRIES + 1
    whole = (10**6 * 2 - 1) * 4096  # one entry is the folder itself
    assert mine.most_bytes(os.getpid(), []) == whole
    assert mine.most_bytes(os.getppid(), []) == whole - ENTRIES * 2 * 4096
