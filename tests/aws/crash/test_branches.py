import os
import signal
from pathlib import Path

import pytest

from .branches import Branches


def test_a_branch_goes_on_from_its_point_and_the_run_from_there_too(tmp_path: Path) -> None:
    branches, passed = Branches(), list[int]()

    def go() -> None:
        point = None
        for number in range(3):
            if not branches.is_branch and branches.branch(str(number)):
                point = number
            passed.append(number)
        (tmp_path / str(point)).write_text(str(passed))

    branches.run(go)
    assert branches.ended == 3
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys("012", "[0, 1, 2]") | {
        "None": "[0, 1, 2]"
    }


def test_a_failure_in_a_branch_fails_the_run_with_its_traceback() -> None:
    branches = Branches()

    def go() -> None:
        if branches.branch("call 7 dies after"):
            raise AssertionError("a task ran twice")

    with pytest.raises(pytest.fail.Exception, match=r"(?s)call 7 dies after: Traceback.*in go.*a task ran twice"):
        branches.run(go)


def test_a_branch_that_dies_fails_the_run() -> None:
    branches = Branches()

    def go() -> None:
        if branches.branch("call 8"):
            os._exit(3)

    with pytest.raises(pytest.fail.Exception, match="call 8: wait status 768"):
        branches.run(go)


def test_a_branch_that_does_not_end_is_killed_with_its_test(tmp_path: Path) -> None:
    branches, pid = Branches(), tmp_path / "pid"

    def go() -> None:
        if branches.branch("call 9"):
            pid.write_text(str(os.getpid()))
            os.kill(os.getppid(), signal.SIGINT)  # as Ctrl-C does while the run waits for its branch
            signal.pause()

    with pytest.raises(KeyboardInterrupt):
        branches.run(go)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_the_code_of_a_run_cannot_catch_the_failure_of_a_branch() -> None:
    assert not issubclass(pytest.fail.Exception, Exception)
