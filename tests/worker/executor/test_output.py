"""The standard output and standard error of tasks."""

import os
import subprocess
import sys

from worker.scripted_master import ScriptedMaster
from worker.tasks import run


def test_output_of_python_and_of_c_belongs_to_the_running_task(pool: ScriptedMaster) -> None:
    def write(number: int) -> None:
        if number == 1:
            print("from print")
            sys.stderr.write("from stderr\n")
            os.write(1, b"from write\n")
            subprocess.run(["echo", "from a child"], check=True)

    silent, loud, after = run(pool, write, 3)
    assert loud.stdout == "from print\nfrom write\nfrom a child\n"
    assert loud.stderr == "from stderr\n"
    assert (silent.stdout, after.stdout, after.stderr) == (None, None, None)


def test_a_tasks_output_is_cut_at_its_limit(pool: ScriptedMaster) -> None:
    (result,) = run(pool, lambda _number: os.write(1, b"head" + b"\xff" * 10**6) and None)
    assert result.stdout is not None
    assert len(result.stdout.encode()) <= 64 * 1024
    assert result.stdout.startswith("head\ufffd")
    assert "of 1000004 bytes are left out" in result.stdout


def test_standard_streams_that_a_task_closed_work_for_the_next_task(pool: ScriptedMaster) -> None:
    def close(_number: int) -> None:
        sys.stdout.close()

    def write(_number: int) -> int:
        print("here")
        return os.getpid()

    run(pool, close, 4)
    for result in run(pool, write, 4):
        assert result.stdout == "here\n"


def test_endless_output_is_stopped(pool: ScriptedMaster) -> None:
    def spam(_number: int) -> None:
        while True:
            os.write(2, b"x" * 10**6)

    (result,) = run(pool, spam)
    assert result.outcome == "crashed"
    assert "standard output and error" in (result.message or "")
    assert result.stderr is not None
    assert len(result.stderr) <= 64 * 1024
