"""Task code that ends its executor, runs without end, or tampers with the executor, fails only its own task."""

import ctypes
import gc
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import Any

import pytest

from cloudpar_worker.core.outcomes import ended_by
from cloudpar_worker.executor.frames import WAITS
from worker.scripted_master import ScriptedMaster
from worker.tasks import run, value_of


def test_a_forked_child_in_which_the_task_returns_ends(pool: ScriptedMaster) -> None:
    def split(_number: int) -> int:
        return os.fork()

    results = run(pool, split, 3)
    assert all(value_of(result) > 0 for result in results)


def test_a_segmentation_fault_fails_only_its_task(pool: ScriptedMaster) -> None:
    def crash(number: int) -> int:
        if number == 2:
            sys.stdout.write("last words\n")
            ctypes.string_at(0)
        return number

    results = run(pool, crash, 5)
    assert [result.outcome for result in results] == ["ok", "ok", "crashed", "ok", "ok"]
    crashed = results[2]
    assert "ended by a segmentation fault (SIGSEGV)" in (crashed.message or "")
    assert crashed.stdout == "last words\n"
    assert crashed.stderr is not None
    assert "in crash" in crashed.stderr
    assert "cloudpar_worker" not in crashed.stderr
    assert "runpy" not in crashed.stderr


@pytest.mark.parametrize(
    ("number", "name"),
    [(signal.SIGABRT, "an abort"), (signal.SIGILL, "an illegal instruction"), (signal.SIGBUS, "a bus error")],
)
def test_the_text_for_a_signal_that_ends_an_executor_has_the_right_article(number: signal.Signals, name: str) -> None:
    assert ended_by(-number) == f"its executor ended by {name} ({number.name})"


def test_a_task_whose_executor_is_killed_from_outside_runs_again(pool: ScriptedMaster, tmp_path: Any) -> None:
    def once(number: int, path: str = str(tmp_path / "killed")) -> int:
        if number == 1 and not os.path.exists(path):  # noqa: PTH110 - a task, which imports little
            open(path, "w").close()  # noqa: PTH123 - a task, which imports little
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    assert [value_of(result) for result in run(pool, once, 3)] == [0, 1, 2]


def test_a_task_that_is_killed_again_and_again_is_given_up(pool: ScriptedMaster) -> None:
    (result,) = run(pool, lambda _number: os.kill(os.getpid(), signal.SIGKILL))
    assert result.outcome == "crashed"
    assert "often the kernel's out-of-memory killer" in (result.message or "")


def busy_loop(_number: int) -> None:
    while True:
        pass


def test_the_other_tasks_of_a_run_continue_after_a_timeout(pool: ScriptedMaster) -> None:
    def some_hang(number: int) -> int:
        while number % 4 == 3:
            pass
        return number

    results = run(pool, some_hang, 12, task_timeout_s=0.5)
    assert [result.outcome for result in results] == ["ok", "ok", "ok", "timeout"] * 3


def test_the_quota_stops_a_task(pool: ScriptedMaster) -> None:
    (result,) = run(pool, busy_loop, budget_us=150_000, account="poor")
    assert result.outcome == "quota"
    assert result.duration_us >= 150_000
    assert "quota" in (result.message or "")


def test_garbage_on_the_executors_channel_ends_only_that_task(pool: ScriptedMaster) -> None:
    def scribble(number: int) -> int:
        if number == 1:
            for descriptor in range(3, 64):
                try:
                    os.write(descriptor, b"\xff\xff\xff\xffgarbage")
                except OSError:
                    continue
            time.sleep(1000)
        return number

    results = run(pool, scribble, 3)
    assert [result.outcome for result in results] == ["ok", "crashed", "ok"]
    assert "file descriptor" in (results[1].message or "")


def test_a_task_that_floods_its_channel_with_marks_ends_alone(pool: ScriptedMaster) -> None:
    """The tasks behind it are recalled meanwhile; the check of this recall once never ended."""

    def flood(number: int) -> int:
        channels = [each for each in gc.get_objects() if isinstance(each, socket.socket) and each.fileno() >= 0]
        while number == 0:
            for channel in channels:
                with suppress(OSError):  # not all of them are open
                    channel.sendall(WAITS * 1_000)
        return number

    results = run(pool, flood, 8, mean_us=20_000)
    assert [result.outcome for result in results] == ["crashed"] + ["ok"] * 7
    assert "marks at once" in (results[0].message or "")
