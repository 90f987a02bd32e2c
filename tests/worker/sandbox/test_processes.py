"""The visible processes of the machine."""

import builtins
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cloudpar_worker.sandbox.processes import process_of, processes
from cloudpar_worker.zygote.memory_meter import memory_of


@pytest.mark.parametrize("error", [PermissionError, FileNotFoundError, ProcessLookupError])
def test_hidden_and_ended_processes_are_omitted(monkeypatch: pytest.MonkeyPatch, error: type[OSError]) -> None:
    """Other users' processes are hidden where /proc is mounted with hidepid=1."""
    there = builtins.open

    def other_than_ours(path: str, *arguments: Any) -> Any:
        if path == f"/proc/{os.getppid()}/status":
            raise error
        return there(path, *arguments)

    monkeypatch.setattr(builtins, "open", other_than_ours)
    found = {process.pid: process for process in processes()}
    assert os.getpid() in found
    assert os.getppid() not in found
    assert found[os.getpid()].private_bytes > 1 << 20


@pytest.mark.parametrize("name", [b"\xff\xfe", b"a) R 1 (b", b"a\nPPid:\t1", b"a\rUid:\t9", b"PPid:\t1"])
def test_a_process_may_have_any_name(name: bytes, tmp_path: Path) -> None:
    """Task code names its processes. A name that is not UTF-8 once ended the agent."""
    program = tmp_path / os.fsdecode(name)
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "60"]) as named:
        try:
            found = process_of(named.pid)
            assert found is not None
            assert (found.pid, found.parent, found.user) == (named.pid, os.getpid(), os.getuid())
            assert memory_of(named.pid, own_user=False) > 0
        finally:
            named.kill()
