"""`cloudpar.multiprocessing.Pool` does what `multiprocessing.Pool` does.

CPython's own tests of a pool (`test._test_multiprocessing._TestPool`) were run against it, too. Those that read
attributes of CPython's implementation, or that lose results of a chunk whose iterable fails, do not hold.
"""

import builtins
import gc
import itertools
import multiprocessing
import queue
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest

from cloudpar.errors import RemoteTraceback, TaskCancelled
from cloudpar.multiprocessing import BUFFER, AsyncResult, Pool, TimeoutError  # noqa: A004 - as programs import it

PAUSE_S = 600.0

remembered: Any = None


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(2) as pool:
        yield pool


class Value:
    pass


def failing(values: int) -> Iterator[int]:
    yield from range(values)
    raise LookupError("no more")


def test_calls_and_maps(pool: Pool) -> None:
    assert pool.apply(int, ("11",), {"base": 2}) == 3
    assert pool.map(abs, range(-3, 3)) == [3, 2, 1, 0, 1, 2]
    assert pool.map(abs, [], chunksize=1) == []
    assert pool.starmap(pow, [(2, 5), (3, 2)]) == [32, 9]
    assert pool.map_async(abs, iter([-1, -2])).get() == [1, 2]
    assert pool.starmap_async(pow, [(2, 5)], 1).get(timeout=60) == [32]


def test_imap_in_order_and_as_results_arrive(pool: Pool) -> None:
    assert list(pool.imap(abs, range(-500, 0), chunksize=100)) == list(range(500, 0, -1))
    assert sorted(pool.imap_unordered(abs, range(-500, 0))) == list(range(1, 501))


def test_imap_of_an_endless_iterable(pool: Pool) -> None:
    results = pool.imap(abs, itertools.count(-2))
    assert [next(results) for _ in range(4)] == [2, 1, 0, 1]


def test_an_error_of_imaps_iterable_comes_after_the_results_before_it(pool: Pool) -> None:
    results = pool.imap(abs, failing(3))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(LookupError):
        next(results)
    with pytest.raises(StopIteration):
        next(results)


def test_an_error_of_maps_iterable_is_raised_at_once(pool: Pool) -> None:
    with pytest.raises(LookupError):
        pool.map(abs, failing(3))


def test_an_exception_is_the_original_one_with_the_remote_traceback(pool: Pool) -> None:
    result = pool.apply_async(divmod, (1, 0))
    with pytest.raises(ZeroDivisionError) as raised:
        result.get()
    assert isinstance(raised.value.__cause__, RemoteTraceback)
    assert result.ready()
    assert not result.successful()
    results = pool.imap(int, ["1", "x", "3"])
    assert next(results) == 1
    with pytest.raises(ValueError, match="invalid literal"):
        next(results)
    assert next(results) == 3


def test_callbacks_get_the_result_or_the_error(pool: Pool) -> None:
    got: list[Any] = []
    called = threading.Semaphore(0)

    def take(value: Any) -> None:
        got.append(value)
        called.release()

    pool.map_async(int, ["1"], callback=take, error_callback=take)
    assert called.acquire(timeout=60)
    pool.apply_async(int, ("x",), callback=take, error_callback=take)
    assert called.acquire(timeout=60)
    assert got[0] == [1]
    assert isinstance(got[1], ValueError)


def test_a_result_that_is_not_there_in_time_raises_multiprocessings_error(pool: Pool) -> None:
    assert TimeoutError is multiprocessing.TimeoutError
    result = pool.apply_async(time.sleep, (0.5,))
    with pytest.raises(TimeoutError):
        result.get(timeout=0.01)
    with pytest.raises(ValueError, match="not ready"):
        result.successful()
    assert result.get() is None
    results = pool.imap(time.sleep, [0.5])
    with pytest.raises(TimeoutError):
        results.next(timeout=0.01)
    assert results.next() is None


def test_a_tasks_own_timeout_stays_pythons_timeout(pool: Pool) -> None:
    def slow(_: int) -> None:
        raise builtins.TimeoutError("slow")

    with pytest.raises(OSError, match="slow"):  # Python's TimeoutError is an OSError, multiprocessing's is not
        next(pool.imap(slow, [1]))


def test_values_of_imap_may_depend_on_earlier_results(pool: Pool) -> None:
    """Each value is sent as soon as the iterable gives it."""
    values: queue.SimpleQueue[int | None] = queue.SimpleQueue()
    values.put(1)
    seen = []
    for result in pool.imap(abs, iter(values.get, None)):
        seen.append(result)
        values.put(result + 1 if result < 4 else None)
    assert seen == [1, 2, 3, 4]


def test_all_calls_of_imap_are_made_if_no_one_reads_their_results() -> None:
    pool = Pool(1)
    results = pool.imap_unordered(abs, (-number for number in range(BUFFER + 200)))
    pool.close()
    pool.join()
    assert sorted(results) == list(range(BUFFER + 200))


def test_a_result_is_ready_after_its_callback_and_join_waits_for_callbacks() -> None:
    pool, got = Pool(1), list[Any]()

    def take_slowly(value: Any) -> None:
        time.sleep(0.3)
        got.append(value)

    assert pool.apply_async(abs, (-1,), callback=take_slowly).get() == 1
    assert got == [1]
    pool.map_async(abs, [-2], callback=take_slowly)
    pool.close()
    pool.join()
    assert got == [1, [2]]


def test_after_an_exception_of_a_map_the_other_calls_are_cancelled_although_the_exception_is_kept(
    pool: Pool,
) -> None:
    def fail_or_wait(number: int) -> None:
        if number == 0:
            raise LookupError("no")
        time.sleep(PAUSE_S)

    with pytest.raises(LookupError) as kept:
        pool.map(fail_or_wait, range(100), chunksize=1)
    assert pool.apply(abs, (-1,)) == 1  # an executor is free
    del kept


def test_maps_of_maps_with_a_buffer(pool: Pool) -> None:
    inner = pool.imap(abs, iter([-1, -2]))
    assert list(pool.imap(float, inner)) == [1.0, 2.0]


@pytest.mark.parametrize("processes", [0, -1])
def test_a_wrong_number_of_processes_is_refused_as_there(processes: int) -> None:
    with pytest.raises(ValueError, match="Number of processes must be at least 1"):
        Pool(processes)


def test_values_of_a_map_are_freed_with_its_last_result(pool: Pool) -> None:
    values = [Value() for _ in range(3)]
    seen = [weakref.ref(value) for value in values]
    pool.map(str, values)
    del values
    gc.collect()
    assert [ref() for ref in seen] == [None, None, None]


def test_a_pool_that_is_closed_finishes_its_calls_and_accepts_no_more() -> None:
    pool = Pool(1)
    result = pool.apply_async(abs, (-1,))
    with pytest.raises(ValueError, match="Pool is still running"):
        pool.join()
    pool.close()
    with pytest.raises(ValueError, match="Pool not running"):
        pool.map(abs, [1])
    pool.join()
    assert result.get() == 1


def test_terminate_stops_calls_that_run() -> None:
    with Pool(1) as pool:
        running: list[AsyncResult[Any]] = [
            pool.apply_async(time.sleep, (PAUSE_S,)),
            pool.map_async(time.sleep, [PAUSE_S] * 100),
        ]
    pool.join()
    for each in running:
        with pytest.raises((CancelledError, TaskCancelled)):
            each.get(timeout=60)
    with pytest.raises(ValueError, match="Pool not running"), pool:
        pass


def remember(folder: Path) -> None:
    global remembered  # noqa: PLW0603 - as initializers do
    remembered = folder


def test_the_initializer_and_its_arguments(tmp_path: Path) -> None:
    with Pool(1, remember, (tmp_path,), maxtasksperchild=10) as pool:
        assert pool.apply(lambda: remembered) == tmp_path
