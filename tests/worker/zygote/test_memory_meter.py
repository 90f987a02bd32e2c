"""A measurement ends even if task code stops it."""

import os
import signal

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
