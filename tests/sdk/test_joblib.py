"""joblib's backend."""

import os
import time
from collections.abc import Iterator

import joblib
import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config

from cloudpar import Pool
from cloudpar.errors import RemoteTraceback
from cloudpar.joblib import LARGE_BYTES, NAME, CloudparBackend, CommonArguments, _common


@pytest.fixture
def backend(any_pool: Pool) -> Iterator[None]:
    with parallel_config(NAME, pool=any_pool, n_jobs=-1):
        yield


class Table:
    """A large value that counts how often it is serialized."""

    nbytes = LARGE_BYTES

    def __init__(self, value: int) -> None:
        self.value = value
        self.serialized = 0

    def __reduce__(self) -> tuple[type["Table"], tuple[int]]:
        self.serialized += 1
        return Table, (self.value,)


def add(table: Table, number: int, *, other: Table | None = None) -> int:
    return table.value + number + (other.value if other else 0)


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
def test_a_large_argument_of_many_calls_is_serialized_twice_and_once_in_later_calls() -> None:
    table, other = Table(10), Table(100)
    assert Parallel()(delayed(add)(table, x, other=other) for x in range(20)) == [110 + x for x in range(20)]
    assert (table.serialized, other.serialized) == (2, 2)
    table.value = 20
    assert Parallel()(delayed(add)(table, x, other=other) for x in range(20)) == [120 + x for x in range(20)]
    assert (table.serialized, other.serialized) == (3, 3)


def test_an_argument_that_takes_the_place_of_a_deleted_one_is_another_one() -> None:
    common = CommonArguments()
    for number in range(10):
        code, calls = common.task([(add, (Table(number), 1), {})])  # the loop has deleted the table before
        assert code.function(calls) == [number + 1]
    del calls
    common.forget_values()
    assert not common._seen


@pytest.mark.usefixtures("backend")
def test_large_arguments_of_other_kinds() -> None:
    lines = ["line"] * LARGE_BYTES
    array = np.ones(LARGE_BYTES)
    assert Parallel()(delayed(len)(lines) for _ in range(4)) == [LARGE_BYTES] * 4
    assert Parallel()(delayed(np.sum)(array[x:]) for x in range(4)) == [LARGE_BYTES - x for x in range(4)]


@pytest.mark.usefixtures("backend")
def test_a_call_inside_a_task_makes_its_calls_one_after_the_other() -> None:
    def outer(number: int) -> tuple[int, list[int], str]:
        parallel = Parallel(n_jobs=-1)
        return parallel.n_jobs, parallel(delayed(abs)(-x) for x in range(number)), type(parallel._backend).__name__

    assert Parallel()([delayed(outer)(3)]) == [(-1, [0, 1, 2], "SequentialBackend")]


def test_the_number_of_calls_at_a_time(any_pool: Pool) -> None:
    most = any_pool.executors or 1_000
    backend = CloudparBackend(any_pool)
    found = {n_jobs: backend.effective_n_jobs(n_jobs) for n_jobs in (None, 1, 5_000, -1, -2, -5_000)}
    assert found == {None: 1, 1: 1, 5_000: most, -1: most, -2: most - 1, -5_000: 1}
    with pytest.raises(ValueError, match="n_jobs=0: give the number"):
        backend.effective_n_jobs(0)


def test_what_is_no_pool_is_refused() -> None:
    with pytest.raises(TypeError, match="pool=4: give a"):
        parallel_config(NAME, pool=4)


def test_without_a_pool_all_calls_share_one() -> None:
    try:
        assert Parallel(n_jobs=2, backend=NAME)(delayed(abs)(-x) for x in range(3)) == [0, 1, 2]
        first = _common[os.getpid()]
        with parallel_config(NAME):
            assert Parallel(n_jobs=2)(delayed(abs)(-x) for x in range(3)) == [0, 1, 2]
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
