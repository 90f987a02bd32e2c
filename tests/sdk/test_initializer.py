"""`Pool(initializer=)`: a function that each executor calls before its first call of a function."""

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cloudpar
from cloudpar import Pool, snapshot
from cloudpar._pool import initialized_code
from cloudpar._pool.initialized_code import InitializedCode
from cloudpar.errors import RemoteTraceback, SerializationError

table: Any = None


def load(calls: Path, values: Any) -> None:
    global table  # noqa: PLW0603 - as initializers do
    table = values
    with calls.open("a") as file:
        file.write(f"{os.getpid()}\n")


def look_up(index: int) -> float:
    return float(table[index])


def double(index: int) -> float:
    return 2 * float(table[index])


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    return tmp_path / "calls"


@pytest.fixture
def pool(calls: Path) -> Iterator[Pool]:
    with Pool(workers=2, initializer=load, initargs=(calls, np.arange(200_000.0))) as pool:
        yield pool


def test_what_the_initializer_sets_is_there_for_every_call(pool: Pool) -> None:
    assert list(pool.map(look_up, range(100))) == list(range(100))
    assert pool.submit(look_up, 7).result() == 7
    assert list(pool.starmap(lambda i: table[i], [(3,)])) == [3]
    assert table is None


def test_each_executor_calls_it_once_for_a_function(pool: Pool, calls: Path) -> None:
    for _ in range(3):
        assert sum(pool.map(look_up, range(1_000))) == sum(range(1_000))
    for index in range(3):
        pool.submit(look_up, index).result()
    pids = calls.read_text().split()
    assert 1 <= len(pids) == len(set(pids)) <= 2


def test_functions_that_are_submitted_in_turn_call_it_once_for_each_function(pool: Pool, calls: Path) -> None:
    """Tasks of several functions in one package would carry the initializer."""
    futures = [pool.submit(function, 4) for _ in range(20) for function in (look_up, double)]
    assert {future.result() for future in futures} == {4, 8}
    assert 2 <= len(calls.read_text().split()) <= 4


def test_threads_may_use_different_functions(pool: Pool) -> None:
    functions = [eval(f"lambda i: table[i] + {number}", globals()) for number in range(8)]  # noqa: S307 - eight functions
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda function: pool.submit(function, 1).result(), functions))
    assert found == [1 + number for number in range(8)]


def test_code_is_remembered_up_to_a_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = InitializedCode(load, (0, 0))
    first = codes.get(look_up)
    assert codes.get(look_up) is first
    codes.get(double)
    assert codes.get(look_up) is first
    monkeypatch.setattr(initialized_code, "REMEMBERED_BYTES", 0)
    codes.get(abs)
    assert codes.get(look_up) is not first


def test_code_is_remembered_for_a_number_of_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program may make a lambda for each call."""
    monkeypatch.setattr(initialized_code, "REMEMBERED", 2)
    codes = InitializedCode(load, (0, 0))
    first = codes.get(look_up)
    codes.get(double)
    assert codes.get(look_up) is first
    codes.get(abs)
    assert codes.get(look_up) is not first


def test_an_error_of_the_initializer_is_the_tasks_error_and_the_next_task_tries_again(tmp_path: Path) -> None:
    there = tmp_path / "model"
    with Pool(workers=1, initializer=there.read_text) as pool:
        with pytest.raises(FileNotFoundError) as raised:
            pool.submit(abs, -1).result()
        assert isinstance(raised.value.__cause__, RemoteTraceback)
        there.touch()
        assert pool.submit(abs, -1).result() == 1


def test_an_error_of_the_pickling_names_the_function(pool: Pool) -> None:
    values = threading.Lock()
    with pytest.raises(SerializationError, match=r"captured variable `values` of .*<lambda>"):
        pool.submit(lambda: values)


def test_a_snapshot_is_serialized_once_and_has_the_initializer(calls: Path) -> None:
    values = [1]
    first = snapshot(lambda: values[0])
    values[0] = 2
    with Pool(workers=1, initializer=load, initargs=(calls, 0)) as pool:
        assert [pool.submit(first).result() for _ in range(2)] == [1, 1]
    assert len(calls.read_text().split()) == 1


def test_parallel_for_does_not_call_it(pool: Pool, calls: Path) -> None:
    seen = [0, 0]

    def body(index: int) -> None:
        seen[index] = index

    pool.parallel_for(0, 2, body)
    assert seen == [0, 1]
    assert not calls.exists()


def test_a_function_that_workers_import_by_name_is_refused(pool: Pool) -> None:
    with pytest.raises(ValueError, match=r"cannot run math:sqrt by its name: give a Python function that calls it"):
        pool.submit(cloudpar.reference("math:sqrt"), 4)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"initializer": 3}, TypeError, "initializer=3: initializer must be a callable, or None"),
        ({"initializer": print, "initargs": 3}, TypeError, r"initargs=3: give a tuple, such as initargs=\(value,\)"),
        ({"initargs": (1,)}, ValueError, "initargs= are the arguments of initializer=: give both"),
    ],
)
def test_wrong_arguments_say_what_to_write(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Pool(workers=1, **arguments)


def test_an_argument_that_cannot_be_pickled_is_named() -> None:
    with (
        Pool(workers=1, initializer=print, initargs=(threading.Lock(),)) as pool,
        pytest.raises(SerializationError, match=r"cannot pickle \[0\] in the captured variable `initargs`"),
    ):
        pool.submit(abs, -1)
