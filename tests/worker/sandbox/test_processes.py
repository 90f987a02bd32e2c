"""The visible processes of the machine."""

import builtins
import os
from typing import Any

import pytest

from cloudpar_worker.sandbox.processes import processes


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
