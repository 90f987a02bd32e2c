"""How many threads numeric libraries start in a task: by default one, since each core has an executor."""

import os
from pathlib import Path

import pytest

from cloudpar import Pool
from cloudpar_worker.core import instructions as do
from cloudpar_worker.core import stimuli as on
from cloudpar_worker.executor.thread_limits import VARIABLES, thread_variables
from support.command import cloudpar
from support.leases import lease_of
from support.up import Up, worker
from worker.driven import CODE, Worker

pytestmark = pytest.mark.usefixtures("_no_variables")


@pytest.fixture
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def blas_threads(_number: int = 0) -> int:
    """How many threads NumPy's linear algebra uses in this process."""
    import numpy as np
    import threadpoolctl  # type: ignore[import-untyped]

    np.linalg.svd(np.eye(3))
    (blas,) = [each for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas"]
    return int(blas["num_threads"])


def test_a_task_of_numpy_has_one_thread_by_default() -> None:
    with Pool(workers=2) as pool:
        assert set(pool.map(blas_threads, range(20))) == {1}


def test_a_pool_says_how_many_threads_its_tasks_have() -> None:
    with Pool(workers=1, threads_per_task=2) as pool:
        assert list(pool.map(blas_threads, range(3))) == [2, 2, 2]
        assert list(pool.map(os.getenv, ["POLARS_MAX_THREADS", "MKL_NUM_THREADS"])) == ["2", "2"]


def test_a_variable_of_the_user_holds_unless_the_pool_says_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    with Pool(workers=1) as pool:
        assert pool.submit(blas_threads).result() == 2
    with Pool(workers=1, threads_per_task=1) as pool:
        assert pool.submit(blas_threads).result() == 1


def test_pools_of_one_master_have_their_own_limits(tmp_path: Path) -> None:
    with Up(tmp_path, workers=1) as up:
        connection = up.endpoint, up.connection["token"]
        with Pool(*connection, threads_per_task=2) as two, Pool(*connection) as default:
            for _ in range(2):
                assert two.submit(blas_threads).result() == 2
                assert default.submit(blas_threads).result() == 1


def test_up_passes_the_thread_limit_on_to_its_worker(tmp_path: Path) -> None:
    with Up(tmp_path, workers=1, more=["--threads-per-task", "2"]) as up, up.pool() as pool:
        assert pool.submit(blas_threads).result() == 2


def test_the_worker_command_takes_a_thread_limit(tmp_path: Path) -> None:
    with Up(tmp_path, workers=0) as up, up.pool() as pool:
        future = pool.submit(blas_threads)
        with worker(up, 1, "--threads-per-task", "2"):
            assert future.result() == 2


def test_a_limit_that_is_no_number_of_threads_is_refused() -> None:
    for number in (0, -1, 1025):
        with pytest.raises(ValueError, match=f"threads_per_task={number}: give a number from 1 to 1,024"):
            Pool(workers=1, threads_per_task=number)
    refused = cloudpar("up", "--threads-per-task", "0")
    assert (refused.returncode, "1<=x<=1024" in refused.stderr) == (2, True)


def test_unset_variables_take_the_value_of_omp_num_threads() -> None:
    assert set(thread_variables({}, None).values()) == {"1"}
    assert set(thread_variables({"OMP_NUM_THREADS": "none", "MKL_NUM_THREADS": ""}, None).values()) == {"none", "1"}
    found = thread_variables({"OMP_NUM_THREADS": "4,2", "MKL_NUM_THREADS": "3"}, None)
    assert found == dict.fromkeys(VARIABLES, "4") | {"OMP_NUM_THREADS": "4,2", "MKL_NUM_THREADS": "3"}
    assert set(thread_variables({"OMP_NUM_THREADS": "4"}, 2).values()) == {"2"}


def test_an_executor_of_another_limit_is_replaced() -> None:
    first, second = lease_of(CODE, 1, threads_per_task=2), lease_of(CODE, 1, threads_per_task=3)
    worker = Worker(first, executors=1)
    assert [feed.executor_id for feed in worker.of(do.Feed)] == [0]
    worker.done(0)
    worker.handle(on.Retrieved([second]))
    assert ([kill.executor_id for kill in worker.of(do.Kill)], worker.of(do.Feed)) == ([0], [])
    worker.handle(on.ExecutorReady(1))
    assert [feed.executor_id for feed in worker.of(do.Feed)] == [1]
