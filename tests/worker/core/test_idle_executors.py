"""Nothing of a task runs on in a shared worker: executors with processes, or that compute while idle, are replaced."""

import pytest

from cloudpar_worker.core import instructions as do
from cloudpar_worker.core import stimuli as on
from cloudpar_worker.core.supervision import DESCRIPTORS, IDLE_MEASURE_US, IDLE_US
from support.leases import lease_of
from worker.driven import CODE, Worker


def worked(*, shared: bool) -> Worker:
    """A worker whose executor has run a task and is idle."""
    worker = Worker(lease_of(CODE, 1), shared=shared)
    worker.done(0)
    return worker


def measured(worker: Worker, processes: int = 0, cpu_us: int = 0) -> bool:
    """Whether an executor is killed after a measurement of it."""
    worker.handle(on.Measured(0, 1, 0, processes, cpu_us), after_us=IDLE_MEASURE_US)
    return bool(worker.of(do.Kill))


@pytest.mark.parametrize("shared", [True, False])
def test_an_idle_executor_with_processes_is_replaced_in_a_shared_worker(shared: bool) -> None:
    worker = worked(shared=shared)
    assert not measured(worker)
    assert measured(worker, processes=1) is shared


@pytest.mark.parametrize("shared", [True, False])
def test_an_idle_executor_that_computes_is_replaced_in_a_shared_worker(shared: bool) -> None:
    worker = worked(shared=shared)
    assert not measured(worker, cpu_us=5_000_000)
    assert not measured(worker, cpu_us=5_000_000 + IDLE_MEASURE_US // 11)
    assert measured(worker, cpu_us=5_000_000 + IDLE_MEASURE_US) is shared


def test_an_idle_executor_that_computes_a_little_all_the_time_is_replaced() -> None:
    worker = worked(shared=True)
    assert [measured(worker, cpu_us=number * IDLE_MEASURE_US // 15) for number in range(3)] == [False, False, True]


def test_an_executor_may_use_a_hundredth_of_its_idle_time() -> None:
    worker = worked(shared=True)
    assert not any(measured(worker, cpu_us=number * IDLE_MEASURE_US // 100) for number in range(40))


def test_the_cpu_time_of_a_task_between_two_measurements_does_not_count_as_idle() -> None:
    worker = worked(shared=True)
    assert not measured(worker, cpu_us=5_000_000)
    worker.handle(on.Retrieved([lease_of(CODE, 1)]))
    worker.done(0)
    assert not measured(worker, cpu_us=5_000_000 + IDLE_MEASURE_US)


@pytest.mark.parametrize("shared", [True, False])
def test_an_executor_that_was_idle_for_long_is_replaced_in_a_shared_worker(shared: bool) -> None:
    worker = worked(shared=shared)
    worker.handle(on.TimePassed(), after_us=IDLE_US - 100_000)
    assert worker.of(do.Kill) == []
    worker.handle(on.TimePassed(), after_us=100_000)
    assert bool(worker.of(do.Kill)) is shared
    worker.handle(on.ExecutorGone(0, -9))
    fresh = worker.state.facts.next_executor - 1
    worker.handle(on.ExecutorReady(fresh))
    worker.handle(on.TimePassed(), after_us=2 * IDLE_US)
    assert worker.of(do.Kill) == [], "a fresh executor has seen no task"


def test_an_executor_with_processes_gets_no_task_before_it_was_measured_while_idle() -> None:
    worker = Worker(lease_of(CODE, 1), shared=True)
    worker.handle(on.Measured(0, 1, 0, 1))
    worker.handle(on.Retrieved([lease_of(CODE, 1)]))
    worker.done(0)
    assert worker.fed == []
    assert [each.executor_ids for each in worker.of(do.Measure)] == [[0]]
    worker.handle(on.Measured(0, 1, 0))
    assert len(worker.fed) == 1


@pytest.mark.parametrize("shared", [True, False])
def test_a_task_whose_processes_have_very_many_descriptors_is_stopped_on_a_shared_worker(shared: bool) -> None:
    worker = Worker(lease_of(CODE, 1), shared=shared)
    worker.handle(on.Measured(0, 1, 0, 100, 0, DESCRIPTORS))
    assert worker.of(do.Kill) == []
    worker.handle(on.Measured(0, 1, 0, 100, 0, DESCRIPTORS + 1))
    assert bool(worker.of(do.Kill)) is shared
