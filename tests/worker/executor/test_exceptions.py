"""An exception of task code comes back, or the result says why it could not."""

import pickle
import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest

from cloudpar_protocol.limits import ERROR_TEXT_CHARS
from support.leases import code_from
from worker.scripted_master import ScriptedMaster
from worker.tasks import error_of, run, value_of


class Odd(Exception):
    def __init__(self, text: str, code: int) -> None:
        super().__init__(text, code)
        self.code = code


def test_an_exception_comes_back_whole(pool: ScriptedMaster) -> None:
    def fail(number: int) -> None:
        try:
            Path("/nowhere-at-all").stat()
        except OSError as error:
            odd = Odd(f"task {number}", 7)
            odd.add_note("look at the disk")
            raise odd from error

    fine, (result,) = run(pool, lambda number: number), run(pool, fail)
    error = error_of(result)
    assert isinstance(error, Odd)
    assert (error.args, error.code, error.__notes__) == (("task 0", 7), 7, ["look at the disk"])
    assert result.message == "Odd: ('task 0', 7)"
    assert result.traceback is not None
    assert "FileNotFoundError" in result.traceback
    assert "in fail" in result.traceback
    assert "cloudpar_worker" not in result.traceback
    assert value_of(fine[0]) == 0


def test_an_exception_that_does_not_pickle_comes_as_text(pool: ScriptedMaster) -> None:
    class Locked(Exception):
        def __init__(self) -> None:
            super().__init__("cannot travel", threading.Lock())

    def fail(_number: int) -> None:
        raise Locked

    (result,) = run(pool, fail)
    assert result.outcome == "error"
    assert result.data is None
    assert "Locked: ('cannot travel'" in (result.message or "")
    assert "comes as text only: its attribute 'args' does not pickle" in (result.message or "")
    assert "in fail" in (result.traceback or "")


def test_a_long_traceback_is_cut_in_the_middle(pool: ScriptedMaster) -> None:
    def fail(_number: int) -> None:
        raise ValueError("start " + "x" * 10**6 + " end")

    (result,) = run(pool, fail)
    assert result.traceback is not None
    assert len(result.traceback) <= ERROR_TEXT_CHARS
    assert result.traceback.startswith("Traceback")
    assert result.traceback.endswith(" end\n")
    assert result.message is not None
    assert len(result.message) <= ERROR_TEXT_CHARS


def test_a_result_that_does_not_pickle_says_what_to_do(pool: ScriptedMaster) -> None:
    (result,) = run(pool, lambda _number: threading.Lock())
    assert result.outcome == "unpicklable"
    assert "_thread.lock" in (result.message or "")
    assert "return plain data" in (result.message or "")


def test_a_module_that_is_missing_here_is_named(pool: ScriptedMaster) -> None:
    module = ModuleType("only_at_the_client")
    exec("def work(number):\n    return number", module.__dict__)
    sys.modules[module.__name__] = module
    try:
        pickled = pickle.dumps(module.__dict__["work"])
    finally:
        del sys.modules[module.__name__]
    for result in run(pool, code_from(pickled), 2):
        error = error_of(result)
        assert isinstance(error, ModuleNotFoundError)
        assert error.name == "only_at_the_client"
        (note,) = error.__notes__
        assert "Install 'only_at_the_client' at the worker" in note
        assert "the task code" in note


def test_task_code_that_is_no_function_is_an_error(pool: ScriptedMaster) -> None:
    (result,) = run(pool, code_from(pickle.dumps(42)))
    assert isinstance(error_of(result), TypeError)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, RecursionError, MemoryError])
def test_exceptions_that_would_end_a_process_are_results(pool: ScriptedMaster, kind: type[BaseException]) -> None:
    def fail(_number: int) -> None:
        raise kind("no more")

    (result,) = run(pool, fail)
    assert isinstance(error_of(result), kind)


def test_endless_recursion_is_an_error(pool: ScriptedMaster) -> None:
    def deeper(number: int) -> int:
        return deeper(number + 1)

    (result,) = run(pool, deeper)
    assert isinstance(error_of(result), RecursionError)
