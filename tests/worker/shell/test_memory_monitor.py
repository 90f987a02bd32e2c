"""What a measurement says of the processes that a task started."""

import errno
import os
import subprocess
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from cloudpar_worker.core import stimuli as on
from cloudpar_worker.shell.memory_monitor import MemoryMonitor


def small_executor() -> Any:
    """Stands in for an executor that has hardly any memory of its own."""
    return SimpleNamespace(
        pid=os.getpid(), executor_id=7, python="3.11",
        private_bytes=lambda: 1, output_bytes=lambda: 0, cpu_us=lambda: 0, shared_memory_bytes=lambda: None,
    )  # fmt: skip


@pytest.mark.parametrize("others", [0, 1])
def test_a_measurement_by_the_zygote_is_no_process_of_a_task(others: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs with the executor's user; an idle executor with processes would be replaced."""
    reports: list[on.Measured] = []
    asked: list[Any] = []
    zygotes: Any = SimpleNamespace(send=lambda *request: asked.append(request))
    monitor = MemoryMonitor(zygotes, 1, reports.append)
    executor = small_executor()
    with ExitStack() as ended:
        meter, task = (ended.enter_context(subprocess.Popen(["sleep", "60"])) for _ in range(2))
        ended.callback(meter.kill)
        ended.callback(task.kill)
        processes: Any = SimpleNamespace(
            descendants=lambda _: {executor.pid: [meter.pid, *[task.pid] * others]}, most_bytes=lambda *_: 10**9
        )
        monkeypatch.setattr(monitor, "_process_tree", processes)
        monitor.measure([executor], [executor])
        assert asked
        assert reports == []
        monitor.measure([executor], [executor])
        assert [report.processes for report in reports] == [others]


def test_a_machine_without_free_descriptors_ends_no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in /proc can be opened then. The next measurement follows soon."""
    reports: list[on.Measured] = []
    zygotes: Any = SimpleNamespace(send=lambda *_: pytest.fail("asked"))
    monitor = MemoryMonitor(zygotes, 10**12, reports.append)
    executor = small_executor()

    def full(*_: object) -> None:
        raise OSError(errno.ENFILE, os.strerror(errno.ENFILE))

    with monkeypatch.context() as patch:
        patch.setattr(monitor, "_process_tree", SimpleNamespace(descendants=full))
        monitor.measure([executor], [executor])
    assert reports == []
    monitor.measure([executor], [executor])
    assert len(reports) == 1


def test_a_pause_after_a_slow_measurement_is_short_if_the_memory_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a task could make a measurement slow, and use any memory in the pause."""
    now = 0.0
    monkeypatch.setattr("cloudpar_worker.shell.memory_monitor.time", SimpleNamespace(monotonic=lambda: now))
    reports: list[on.Measured] = []
    asked: list[Any] = []
    zygotes: Any = SimpleNamespace(send=lambda *request: asked.append(request))
    monitor = MemoryMonitor(zygotes, 100, reports.append)
    executor = small_executor()
    shared_pages = 70
    processes: Any = SimpleNamespace(descendants=lambda _: {}, most_bytes=lambda *_: shared_pages)
    monkeypatch.setattr(monitor, "_process_tree", processes)
    monitor.measure([executor], [executor])
    now = 2.0
    monitor.on_answer(executor, 60)  # the pause lasts until 22.0, and is short above 71 + 40 bytes
    for moment, pages in ((3.0, 110), (3.9, 111), (4.1, 111)):
        now, shared_pages = moment, pages
        monitor.measure([executor], [executor])
    assert [report.rss_bytes for report in reports] == [60, 1, 1]
    assert len(asked) == 2
