import os

import pytest

from .branches import Branches


def test_a_branch_goes_on_from_its_point_and_the_run_from_there_too() -> None:
    branches, run, seen = Branches(), os.getpid(), list[int]()

    def go() -> None:
        for number in range(3):
            if not branches.is_branch and branches.branch(str(number)):
                seen.append(number)
        assert seen == ([] if os.getpid() == run else seen[:1])

    branches.run(go)
    assert (branches.ended, seen) == (3, [])


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


def test_the_code_of_a_run_cannot_catch_the_failure_of_a_branch() -> None:
    assert not issubclass(pytest.fail.Exception, Exception)
