"""A task that raises is retried as often, and after such exceptions, as its package says."""

import time
from pathlib import Path
from typing import Any

import pytest

from cloudpar_protocol.errors import Unavailable
from cloudpar_protocol.payloads import TaskResult
from cloudpar_worker.executor.failures import is_among
from support.leases import inline
from worker.scripted_master import ScriptedMaster
from worker.tasks import error_of, run


def fail_before(tries: int, counted: list[int], kind: type[BaseException] = ValueError) -> None:
    """`counted` is the task's data, of which every attempt gets a fresh copy."""
    path = Path(str(counted[0]))
    attempts = len(path.read_text()) if path.exists() else 0
    path.write_text("x" * (attempts + 1))
    counted.clear()
    if attempts < tries:
        raise kind(f"attempt {attempts + 1}")


def retried(pool: ScriptedMaster, function: Any, path: Path, retries: int, *retry_on: str) -> tuple[TaskResult, int]:
    (result,) = run(pool, function, data=inline([[path]]), retries=retries, retry_on=list(retry_on))
    return result, len(path.read_text())


def test_a_task_that_raises_is_tried_again(pool: ScriptedMaster, tmp_path: Path) -> None:
    result, attempts = retried(pool, lambda data: fail_before(2, data), tmp_path / "a", 2)
    assert (result.outcome, attempts) == ("ok", 3)


def test_the_result_of_the_last_attempt_names_the_earlier_ones(pool: ScriptedMaster, tmp_path: Path) -> None:
    result, attempts = retried(
        pool, lambda data: fail_before(9, data), tmp_path / "a", 2, "ArithmeticError", "ValueError"
    )
    assert attempts == 3
    assert error_of(result).args == ("attempt 3",)
    assert error_of(result).__context__ is None
    assert result.traceback is not None
    before, _, last = result.traceback.partition("Attempt 3, the last one:\n")
    assert before == "Attempt 1 raised ValueError: attempt 1\nAttempt 2 raised ValueError: attempt 2\n"
    assert last.startswith("Traceback")
    assert "During handling" not in last
    assert "cloudpar_worker" not in last


@pytest.mark.parametrize("module", ["cloudpar_protocol.errors", "cloudpar.errors"])
def test_the_protocols_errors_are_retried_whether_or_not_a_task_imports_the_sdk(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Unavailable, "__module__", module)
    assert is_among(Unavailable("later"), ["cloudpar_protocol.errors.Unavailable"])


def test_only_the_named_exceptions_and_derived_ones_are_retried(pool: ScriptedMaster, tmp_path: Path) -> None:
    class Passing(Exception):
        pass

    class Derived(Passing):
        pass

    mine = f"{Passing.__module__}.{Passing.__name__}"
    _, attempts = retried(pool, lambda data: fail_before(9, data, Derived), tmp_path / "a", 1, mine)
    assert attempts == 2
    _, attempts = retried(pool, lambda data: fail_before(9, data, KeyError), tmp_path / "b", 1, mine)
    assert attempts == 1
    _, attempts = retried(pool, lambda data: fail_before(9, data, SystemExit), tmp_path / "c", 1)
    assert attempts == 1


def test_all_attempts_are_charged(pool: ScriptedMaster) -> None:
    def fail(_: int) -> None:
        time.sleep(0.05)
        raise ValueError

    (result,) = run(pool, fail, retries=3)
    assert result.duration_us >= 200_000


def test_a_task_that_cannot_be_unpickled_is_not_retried(pool: ScriptedMaster, tmp_path: Path) -> None:
    class Data:
        def __reduce__(self) -> Any:
            return exec, (f"open({str(tmp_path / 'a')!r}, 'a').write('x'); 1 / 0",)

    (result,) = run(pool, lambda _: None, data=inline([Data()]), retries=3)
    assert result.outcome == "error"
    assert len((tmp_path / "a").read_text()) == 1
