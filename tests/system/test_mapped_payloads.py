"""Executors of a pool on one machine map large arrays: arguments and captured objects share the memory of a file."""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloudpar import Pool

N = 1_000_000
SMAPS = Path("/proc/self/smaps")

pytestmark = pytest.mark.skipif(not SMAPS.exists(), reason="the kernel's report on a mapping is Linux's")


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(workers=2, progress=False) as pool:
        yield pool


def own_kb(array: Any) -> int:
    """How many KB of an array's memory this process does not share with a file."""
    address = array.ctypes.data
    found = None
    for line in SMAPS.read_text().splitlines():
        if head := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            found = int(head[1], 16) <= address < int(head[2], 16)
        elif found and line.startswith("Anonymous:"):
            return int(line.split()[1])
    raise LookupError("the array is in no mapping")


def measure(array: Any) -> tuple[float, int, int, bool]:
    """The sum of an array, and its own KB before and after a write into it."""
    total, before = float(array.sum()), own_kb(array)
    array[0] = 77
    return total, before, own_kb(array), bool(array.flags.aligned)


def test_arguments_are_shared_and_writes_stay_in_the_task(pool: Pool) -> None:
    arrays = [np.full(N, float(number)) for number in range(6)]
    for number, (total, before, after, is_aligned) in enumerate(pool.map(measure, arrays)):
        assert (total, before, is_aligned) == (number * N, 0, True)
        assert 0 < after < 100  # the kernel has copied the page of the first number
        assert arrays[number][0] == number


def test_arguments_of_submit_are_shared(pool: Pool) -> None:
    futures = [pool.submit(measure, np.full(N, float(number))) for number in range(4)]
    found = [future.result() for future in futures]
    assert [(total, before) for total, before, _, _ in found] == [(number * N, 0) for number in range(4)]


def test_what_a_function_captures_is_shared_by_all_executors(pool: Pool) -> None:
    array = np.arange(float(N))

    def part(number: int) -> tuple[float, int, int]:
        time.sleep(0.01)
        return float(array[number]), own_kb(array), os.getpid()

    found = list(pool.map(part, range(40)))
    assert len({process for _, _, process in found}) == 2
    assert [value for value, _, _ in found] == list(range(40))
    assert {own for _, own, _ in found} == {0}


def test_a_retry_gets_the_array_as_it_was(pool: Pool, tmp_path: Path) -> None:
    def fails_once(array: Any) -> float:
        if not (tmp_path / "failed").exists():
            (tmp_path / "failed").touch()
            array[:] = -1
            raise ValueError
        return float(array.sum())

    assert list(pool.map(fails_once, [np.ones(N)], retries=1)) == [N]


def test_results_are_arrays_that_can_be_changed(pool: Pool) -> None:
    for number, result in enumerate(pool.map(lambda number: (number, np.full(N, float(number))), range(6))):
        assert (result[0], float(result[1].sum())) == (number, number * N)
        result[1][0] = 77


def test_large_results_of_retries_and_after_output_arrive(pool: Pool, tmp_path: Path) -> None:
    def second_time(_: int) -> Any:
        print("some output")
        if not (tmp_path / "failed").exists():
            (tmp_path / "failed").touch()
            raise ValueError
        return np.ones(N)

    assert [float(result.sum()) for result in pool.map(second_time, [0], retries=1)] == [N]


def test_an_attachment_gives_each_reader_an_array_of_its_own(pool: Pool) -> None:
    results = pool.map(lambda _: np.zeros(N), range(1))
    assert results.package_id is not None
    attached = pool.attach(results.package_id)
    first, again = list(attached), list(attached)
    first[0][:] = 1
    assert float(again[0].sum()) == 0


def test_a_loop_writes_into_a_large_array(pool: Pool) -> None:
    array = np.zeros(N)

    def body(number: int) -> None:
        array[number] = number

    pool.parallel_for(0, 4, body)
    assert array[:5].tolist() == [0, 1, 2, 3, 0]


def test_results_of_fast_tasks_wait_for_the_agent(pool: Pool) -> None:
    """Files take no room in a channel, so an executor could otherwise fill the memory of its machine."""
    results = pool.map(lambda number: np.full(100_000, float(number)), range(200))
    assert [float(result[7]) for result in results] == list(range(200))
