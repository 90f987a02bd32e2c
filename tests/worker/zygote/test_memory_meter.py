"""A measurement ends even if task code stops it, and names of processes do not disturb it."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from cloudpar_worker.zygote import memory_meter
from cloudpar_worker.zygote.memory_meter import MemoryMeter
from cloudpar_worker.zygote.messages import UNKNOWN


def test_a_measurement_that_a_task_stopped_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> int:
        os.kill(os.getpid(), signal.SIGSTOP)
        return 1

    monkeypatch.setattr(memory_meter, "memory_of", stopped)
    monkeypatch.setattr(memory_meter, "_PATIENCE_S", 0)
    meter = MemoryMeter()
    meter.start(7, os.getpid(), None)
    child, status = os.waitpid(-1, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    assert meter.busy
    meter.kill_overdue()
    assert os.waitpid(child, 0) == (child, signal.SIGKILL)
    assert meter.ended(child) == (7, UNKNOWN)
    assert not meter.busy


def test_the_age_of_a_process_with_a_strange_name_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory_meter, "_YOUNG_S", -1.0)  # so that no process is young
    program = tmp_path / os.fsdecode(b"\xff) R 1\n(")
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "60"]) as named:
        try:
            assert not memory_meter._is_young(named.pid)
        finally:
            named.kill()
