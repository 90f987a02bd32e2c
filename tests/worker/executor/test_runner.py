"""What becomes of task code, in real executors: values, exceptions, crashes, limits."""

import asyncio
import ctypes
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cloudpar_protocol.limits import ERROR_TEXT_CHARS, INLINE_RESULT_BYTES
from cloudpar_protocol.payloads import TaskResult
from cloudpar_worker.executor import runner
from cloudpar_worker.executor.frames import encode_result_into
from worker.leases import code_from, code_of, inline, lease_of
from worker.scripted_master import TOKEN, ScriptedMaster


def run(pool: ScriptedMaster, function: Any, tasks: int = 1, **changes: Any) -> list[TaskResult]:
    lease = lease_of(function, tasks, **changes)
    pool.hand_out(lease)
    results = pool.wait_for_results(tasks, lease.package_id)
    pool.wait(lambda: pool.closed(lease.lease_id))
    return [results[index] for index in sorted(results)]


def value_of(result: TaskResult) -> Any:
    assert result.outcome == "ok", result
    assert result.data is not None
    return pickle.loads(result.data)


def error_of(result: TaskResult) -> Any:
    assert result.outcome == "error", result
    assert result.data is not None, result
    return pickle.loads(result.data)


def test_values_of_a_range_come_back(pool: ScriptedMaster) -> None:
    results = run(pool, lambda number: number**2, 50)
    assert [value_of(result) for result in results] == [number**2 for number in range(50)]
    assert all(result.duration_us >= 1 for result in results)
    assert all(result.stdout is None and result.stderr is None for result in results)


def test_items_are_called_as_the_package_says(pool: ScriptedMaster) -> None:
    def join(*args: Any, **kwargs: Any) -> Any:
        return args, kwargs

    (value,) = run(pool, lambda item: item, data=inline([{"a": 1}]))
    (args,) = run(pool, join, data=inline([(1, 2)]), call="args")
    (both,) = run(pool, join, data=inline([((1,), {"b": 2})]), call="args_kwargs")
    assert value_of(value) == {"a": 1}
    assert value_of(args) == ((1, 2), {})
    assert value_of(both) == ((1,), {"b": 2})


def test_a_lease_of_several_ranges_has_their_items_in_a_row(pool: ScriptedMaster) -> None:
    lease = lease_of(lambda item: item, 10, ranges=[(1, 3), (7, 9)], data=inline(["b", "c", "h", "i"]))
    pool.hand_out(lease)
    results = pool.wait_for_results(4, lease.package_id)
    assert {index: value_of(result) for index, result in results.items()} == {1: "b", 2: "c", 7: "h", 8: "i"}


class Odd(Exception):
    def __init__(self, text: str, code: int) -> None:
        super().__init__(text, code)
        self.code = code


def test_an_exception_comes_back_whole(pool: ScriptedMaster) -> None:
    def fail(number: int) -> None:
        try:
            Path("/nowhere-at-all").stat()
        except OSError as error:
            trouble = Odd(f"task {number}", 7)
            trouble.add_note("look at the disk")
            raise trouble from error

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


def test_the_last_attempt_is_the_result_and_tells_of_the_others(pool: ScriptedMaster, tmp_path: Path) -> None:
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


def test_only_exceptions_that_were_named_and_what_is_derived_from_them(pool: ScriptedMaster, tmp_path: Path) -> None:
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


def test_what_cannot_be_unpickled_is_not_tried_again(pool: ScriptedMaster, tmp_path: Path) -> None:
    class Data:
        def __reduce__(self) -> Any:
            return exec, (f"open({str(tmp_path / 'a')!r}, 'a').write('x'); 1 / 0",)

    (result,) = run(pool, lambda _: None, data=inline([Data()]), retries=3)
    assert result.outcome == "error"
    assert len((tmp_path / "a").read_text()) == 1


def test_an_exception_that_does_not_pickle_comes_as_text(pool: ScriptedMaster) -> None:
    class Locked(Exception):
        def __init__(self) -> None:
            super().__init__("cannot travel", threading.Lock())

    def fail(_number: int) -> None:
        raise Locked

    (result,) = run(pool, fail)
    assert result.outcome == "error"
    assert result.data is None
    assert result.message is not None
    assert "Locked: ('cannot travel'" in result.message
    assert "comes as text only: its attribute 'args' does not pickle" in result.message
    assert result.traceback is not None
    assert "in fail" in result.traceback


def test_an_exception_with_a_constructor_of_its_own_comes_back_whole(pool: ScriptedMaster) -> None:
    class Needy(Exception):
        def __init__(self, *, reason: str) -> None:
            super().__init__(f"because {reason}")
            self.reason = reason

    def fail(_number: int) -> None:
        raise Needy(reason="of this")

    (result,) = run(pool, fail)
    with pytest.raises(Needy, match="because of this") as caught:
        raise error_of(result)
    assert caught.value.reason == "of this"


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
    assert result.message is not None
    assert "_thread.lock" in result.message
    assert "return plain data" in result.message


def test_a_module_that_is_missing_here_is_named(pool: ScriptedMaster) -> None:
    module = ModuleType("only_at_the_client")
    exec("def work(number):\n    return number", module.__dict__)  # noqa: S102 - a module that no file holds
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
def test_what_would_end_a_process_is_a_result(pool: ScriptedMaster, kind: type[BaseException]) -> None:
    def fail(_number: int) -> None:
        raise kind("no more")

    def pid(_number: int) -> int:
        return os.getpid()

    (result,) = run(pool, fail)
    assert isinstance(error_of(result), kind)


def test_endless_recursion_is_an_error(pool: ScriptedMaster) -> None:
    def deeper(number: int) -> int:
        return deeper(number + 1)

    (result,) = run(pool, deeper)
    assert isinstance(error_of(result), RecursionError)


def test_event_loops_and_threads_work(pool: ScriptedMaster) -> None:
    def loop(number: int) -> int:
        async def twice() -> int:
            await asyncio.sleep(0)
            return number * 2

        found: list[int] = []
        thread = threading.Thread(target=lambda: found.append(asyncio.run(twice())))
        thread.start()
        thread.join()
        return found[0]

    assert [value_of(result) for result in run(pool, loop, 3)] == [0, 2, 4]


def test_a_child_that_comes_back_from_a_fork_ends(pool: ScriptedMaster) -> None:
    def split(_number: int) -> int:
        return os.fork()

    results = run(pool, split, 3)
    assert all(value_of(result) > 0 for result in results)


def test_a_segmentation_fault_is_that_tasks_result(pool: ScriptedMaster) -> None:
    def crash(number: int) -> int:
        if number == 2:
            sys.stdout.write("last words\n")
            ctypes.string_at(0)
        return number

    results = run(pool, crash, 5)
    assert [result.outcome for result in results] == ["ok", "ok", "crashed", "ok", "ok"]
    crashed = results[2]
    assert crashed.message is not None
    assert "segmentation fault (SIGSEGV)" in crashed.message
    assert crashed.stdout == "last words\n"
    assert crashed.stderr is not None
    assert "in crash" in crashed.stderr


def test_a_task_whose_executor_is_killed_from_outside_runs_again(pool: ScriptedMaster, tmp_path: Any) -> None:
    def once(number: int, path: str = str(tmp_path / "killed")) -> int:
        if number == 1 and not os.path.exists(path):  # noqa: PTH110
            open(path, "w").close()  # noqa: PTH123
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    assert [value_of(result) for result in run(pool, once, 3)] == [0, 1, 2]


def test_a_task_that_is_killed_again_and_again_is_given_up(pool: ScriptedMaster) -> None:
    (result,) = run(pool, lambda _number: os.kill(os.getpid(), signal.SIGKILL))
    assert result.outcome == "crashed"
    assert result.message is not None
    assert "often the kernel's out-of-memory killer" in result.message


def busy_loop(_number: int) -> None:
    while True:
        pass


def test_the_rest_of_a_run_goes_on_after_a_timeout(pool: ScriptedMaster) -> None:
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
    assert result.message is not None
    assert "quota" in result.message


def test_output_of_python_and_of_c_is_the_tasks(pool: ScriptedMaster) -> None:
    def write(number: int) -> None:
        if number == 1:
            print("from print")  # noqa: T201
            sys.stderr.write("from stderr\n")
            os.write(1, b"from write\n")
            subprocess.run(["echo", "from a child"], check=True)  # noqa: S607

    silent, loud, after = run(pool, write, 3)
    assert loud.stdout == "from print\nfrom write\nfrom a child\n"
    assert loud.stderr == "from stderr\n"
    assert (silent.stdout, after.stdout, after.stderr) == (None, None, None)


def test_output_is_bounded(pool: ScriptedMaster) -> None:
    (result,) = run(pool, lambda _number: os.write(1, b"head" + b"\xff" * 10**6) and None)
    assert result.stdout is not None
    assert len(result.stdout.encode()) <= 64 * 1024
    assert result.stdout.startswith("head\ufffd")
    assert "of 1000004 bytes are left out" in result.stdout


def test_closed_standard_streams_hurt_nobody_else(pool: ScriptedMaster) -> None:
    def close(_number: int) -> None:
        sys.stdout.close()

    def write(_number: int) -> int:
        print("here")  # noqa: T201
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
    assert result.message is not None
    assert "standard output and error" in result.message
    assert result.stderr is not None
    assert len(result.stderr) <= 64 * 1024


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
    assert results[1].message is not None
    assert "file descriptor" in results[1].message


def test_a_forged_result_is_garbage(pool: ScriptedMaster) -> None:
    def forge(number: int) -> int:
        frame = bytearray(4)
        encode_result_into(TaskResult(number + 5, "ok", 1), frame)
        for descriptor in range(3, 64):
            try:
                os.write(descriptor, frame)
            except OSError:
                continue
        time.sleep(1000)
        return number

    (result,) = run(pool, forge)
    assert result.outcome == "crashed"


def test_an_altered_clock_changes_no_charge(pool: ScriptedMaster) -> None:
    def cheat(_number: int) -> None:
        began = time.monotonic()
        real, frozen = time.monotonic, time.monotonic_ns()
        time.monotonic = lambda: 0.0
        time.monotonic_ns = time.perf_counter_ns = time.time_ns = lambda: frozen
        runner._clock = lambda: frozen
        while real() - began < 0.3:
            pass

    def exaggerate(_number: int) -> None:
        runner._clock = lambda: time.monotonic_ns() * 1000

    (cheap,) = run(pool, cheat, account="cheat")
    (dear,) = run(pool, exaggerate, account="exaggerate")
    assert cheap.duration_us >= 250_000
    assert dear.duration_us <= 60_000_000


def test_an_executor_serves_one_account(pool: ScriptedMaster) -> None:
    def pid(_number: int) -> int:
        return os.getpid()

    seen: dict[str, set[int]] = {}
    for account in ("red", "blue", "red", "blue"):
        pids = {value_of(result) for result in run(pool, pid, 4, account=account)}
        for other, others in seen.items():
            assert other == account or not pids & others
        seen.setdefault(account, set()).update(pids)


def test_large_results_go_to_a_blob(pool: ScriptedMaster) -> None:
    size = INLINE_RESULT_BYTES * 3
    results = run(pool, lambda number: b"small" if number == 1 else bytes([number]) * size, 4)
    assert value_of(results[1]) == b"small"
    for number in (0, 2, 3):
        blob = results[number].blob
        assert blob is not None
        body = pool.blobs[blob.key][blob.offset : blob.offset + blob.size]
        assert pickle.loads(body) == bytes([number]) * size


def test_many_functions_leave_nothing_behind(pool: ScriptedMaster) -> None:
    source = (
        "def f(number):\n    '{}'\n    import gc\n"
        "    return sum(getattr(found, '__name__', '') == 'f' for found in gc.get_objects())"
    )
    for number in range(200):
        scope: dict[str, Any] = {"__name__": __name__}
        exec(source.format(number), scope)  # noqa: S102
        code = code_of(scope["f"])
        (result,) = run(pool, code)
    assert value_of(result) < 120


def test_a_thread_left_behind_does_not_keep_the_executor(pool: ScriptedMaster) -> None:
    def leave(_number: int) -> int:
        threading.Thread(target=time.sleep, args=(1000,)).start()
        return os.getpid()

    (result,) = run(pool, leave, account="threads")
    old = value_of(result)
    assert all(value_of(other) != old for other in run(pool, lambda _number: os.getpid(), 2, account="others"))


def test_the_agents_token_is_nowhere_near_task_code(pool: ScriptedMaster) -> None:
    def look(_number: int, needle_hex: str = TOKEN.encode().hex()) -> bool:
        needle = bytes.fromhex(needle_hex)
        for pid in (os.getpid(), os.getppid()):
            if needle in Path(f"/proc/{pid}/environ").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes():
                return True
        return False

    assert value_of(run(pool, look)[0]) is False
