"""joblib's backend."""

import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from joblib import Parallel, delayed, parallel_config

from cloudpar import Pool
from cloudpar.errors import RemoteTraceback, SerializationError
from cloudpar.joblib import NAME, CloudparBackend
from cloudpar.joblib.backend import REMOTE_JOBS, _common
from cloudpar.joblib.common_arguments import LARGE_BYTES, CommonArguments

N = LARGE_BYTES // 8


@pytest.fixture
def backend(any_pool: Pool) -> Iterator[None]:
    with parallel_config(NAME, pool=any_pool, n_jobs=-1):
        yield


def add(array: Any, number: int, *, other: Any = 0) -> float:
    return float(np.sum(array)) + number + float(np.sum(other))


@pytest.mark.usefixtures("backend")
def test_results_are_in_the_order_of_the_calls() -> None:
    assert Parallel()(delayed(pow)(x, 2) for x in range(300)) == [x * x for x in range(300)]
    assert list(Parallel(return_as="generator")(delayed(divmod)(x, 3) for x in range(5))) == [
        divmod(x, 3) for x in range(5)
    ]
    assert sorted(Parallel(return_as="generator_unordered")(delayed(abs)(-x) for x in range(5))) == [0, 1, 2, 3, 4]


@pytest.mark.usefixtures("backend")
def test_lambdas_closures_and_keywords() -> None:
    factor = 3
    assert Parallel()(delayed(lambda x, *, y: factor * x + y)(x, y=1) for x in range(3)) == [1, 4, 7]


@pytest.mark.usefixtures("backend")
def test_an_exception_is_the_original_one_with_the_remote_traceback() -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        Parallel()(delayed(divmod)(1, x - 3) for x in range(10))
    assert isinstance(raised.value.__cause__, RemoteTraceback)


def test_after_an_exception_the_other_calls_are_stopped() -> None:
    def call(number: int) -> None:
        if number == 0:
            raise ValueError("no")
        time.sleep(600)

    with Pool(workers=2, progress=False) as pool, parallel_config(NAME, pool=pool, n_jobs=-1):
        with pytest.raises(ValueError, match="no"):
            Parallel()(delayed(call)(number) for number in range(4))
        assert Parallel()([delayed(abs)(-1)]) == [1]


@pytest.mark.usefixtures("backend")
def test_a_late_argument_that_cannot_be_serialized_ends_the_call() -> None:
    """joblib starts this call when an earlier one has ended, in a thread that only logs errors."""
    with pytest.raises(SerializationError, match="lock"):
        Parallel()(delayed(id)(each) for each in [*[1] * 40, threading.Lock()])


def test_a_pool_that_is_shut_down_ends_the_call() -> None:
    with Pool(workers=2, progress=False) as pool, parallel_config(NAME, pool=pool, n_jobs=-1):
        results = Parallel(return_as="generator")(delayed(time.sleep)(0.05) for _ in range(20))
        pool.shutdown()
        with pytest.raises(RuntimeError, match="after shutdown"):
            list(results)


def test_an_iterator_that_reads_the_same_pool() -> None:
    with Pool(workers=2, progress=False) as pool, parallel_config(NAME, pool=pool, n_jobs=-1):
        values = pool.map(abs, range(50), buffersize=4)
        assert Parallel()(delayed(abs)(value) for value in values) == [*range(50)]


@pytest.mark.usefixtures("backend")
def test_calls_with_large_arguments_in_common() -> None:
    array, table = np.ones(N), pd.DataFrame({"nbytes": np.ones(N), "b": 1.0})
    for value in (1.0, 2.0):
        array[:] = value
        found = Parallel()(delayed(add)(array, x, other=table) for x in range(12))
        assert found == [N * value + x + 2 * N for x in range(12)]


@pytest.mark.usefixtures("backend")
def test_a_call_that_writes_into_an_argument_changes_no_other_call() -> None:
    """As with joblib's own processes, an array that calls have in common is read-only."""

    def scale(array: Any) -> float:
        array *= 2
        return float(array[0])

    array = np.ones(N)
    with pytest.raises(ValueError, match="read-only"):
        Parallel(batch_size=1)(delayed(scale)(array) for _ in range(6))
    assert array[0] == 1
    assert Parallel()([delayed(scale)(np.ones(N)), delayed(scale)(np.ones(N))]) == [2, 2]


def captured(common: CommonArguments, *args: Any) -> int:
    """Start a task, run it here, and return how many of its arguments its function captures."""
    code, [(function, left, kwargs, places)] = common.task([(add, args, {})])
    assert code.function([(function, left, kwargs, places)]) == [add(*args)]
    return len(places)


def test_an_argument_is_captured_when_a_second_task_has_it() -> None:
    common, array = CommonArguments(), np.ones(N)
    assert [captured(common, array, number) for number in range(4)] == [0, 1, 1, 1]
    assert captured(common, array[1:], 0) == 0
    common.forget_values()
    assert captured(common, array, 0) == 1


def test_a_smaller_argument_that_varies_does_not_serialize_a_large_one_again() -> None:
    common, array, folds = CommonArguments(), np.ones(3 * N), [np.ones(N) for _ in range(5)]
    codes = {id(common.task([(add, (array, 0), {"other": folds[number % 5]})])[0]) for number in range(20)}
    assert len(codes) == 2  # without captured arguments, and with the array


def test_a_stream_of_arrays_does_not_fill_the_memory() -> None:
    common = CommonArguments()
    for _ in range(40):
        array = np.ones(N)
        for number in range(4):
            captured(common, array, number)
    assert len(common._captured) <= 2
    del array
    common.forget_values()
    assert not common._captured
    assert not common._seen


def test_an_argument_that_takes_the_place_of_a_deleted_one_is_another_one() -> None:
    common = CommonArguments()
    assert [captured(common, np.full(N, float(number)), 1) for number in range(10)] == [0] * 10


class Odd:
    """A value that answers every question with an error."""

    def __getattr__(self, name: str) -> Any:
        raise KeyError(name)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("value", [np.float64, pd.DataFrame, np.dtype(float), pd.NA])
def test_values_without_a_size(value: Any) -> None:
    assert Parallel()(delayed(isinstance)(value, object) for _ in range(5)) == [True] * 5


def test_a_value_that_raises_errors_is_not_large() -> None:
    Odd.__module__ = "scipy.sparse"
    _, [(_, left, _, _)] = CommonArguments().task([(add, (Odd(), 1), {})])
    assert left[1:] == [1]


@pytest.mark.usefixtures("backend")
def test_a_call_inside_a_task_makes_its_calls_one_after_the_other() -> None:
    def outer(number: int) -> tuple[int, list[int], str]:
        parallel = Parallel(n_jobs=-1)
        return parallel.n_jobs, parallel(delayed(abs)(-x) for x in range(number)), type(parallel._backend).__name__

    assert Parallel()([delayed(outer)(3)]) == [(-1, [0, 1, 2], "SequentialBackend")]


def test_the_number_of_calls_at_a_time(any_pool: Pool) -> None:
    backend, most = CloudparBackend(any_pool), any_pool.executors or REMOTE_JOBS
    found = {n_jobs: backend.effective_n_jobs(n_jobs) for n_jobs in (None, 1, -1, -2, -5_000)}
    assert found == {None: most, 1: 1, -1: most, -2: most - 1, -5_000: 1}
    assert backend.effective_n_jobs(5_000) == (any_pool.executors or 5_000)
    with pytest.raises(ValueError, match="n_jobs=0: give the number"):
        backend.effective_n_jobs(0)


def test_long_calls_after_short_ones_start_in_small_batches(embedded: Pool) -> None:
    backend = CloudparBackend(embedded)
    with parallel_config(backend, n_jobs=-1):
        Parallel()(delayed(abs)(1) for _ in range(2_000))
    assert backend.compute_batch_size() == 1


def test_what_is_no_pool_is_refused() -> None:
    with pytest.raises(TypeError, match="pool=4: give a"):
        parallel_config(NAME, pool=4)


def test_without_a_pool_all_calls_share_one() -> None:
    assert not _common
    try:
        with parallel_config(NAME):
            assert not _common
            assert Parallel(n_jobs=2)(delayed(abs)(-x) for x in range(3)) == [0, 1, 2]
        first = _common[os.getpid()]
        assert Parallel(n_jobs=2, backend=NAME)(delayed(abs)(-x) for x in range(3)) == [0, 1, 2]
        assert _common == {os.getpid(): first}
    finally:
        _common.pop(os.getpid()).shutdown()


def test_a_worker_needs_only_joblib() -> None:
    code, _ = CommonArguments().task([(abs, (-1,), {})])
    modules = {name.partition(".")[0] for name in code.code.modules}
    assert "joblib" in modules
    assert "cloudpar" not in modules


def test_joblib_knows_the_backend() -> None:
    assert joblib.parallel.BACKENDS[NAME] is CloudparBackend
