"""Of each account, at most as many executors as the worker was started with keep their share of the processors."""

from typing import Any

from cloudpar_protocol.worker_messages import Lease
from cloudpar_worker.core import instructions as do
from cloudpar_worker.core import stimuli as on
from cloudpar_worker.core.nesting import LIGHT_US
from cloudpar_worker.core.supervision import MEASURE_US
from support.leases import lease_of
from worker.driven import CODE, Worker


def at_depths(*depths: int, **fields: Any) -> list[Lease]:
    return [lease_of(CODE, 1, mean_us=1_000_000, depth=depth, **fields) for depth in depths]


class Chain(Worker):
    """A worker with one executor. The task of each lease but the last says that it waits, so that the next one starts.

    The executors have the numbers of their leases. They have been measured once.
    """

    def __init__(self, *leases: Lease, shared: bool = True) -> None:
        first, *others = leases
        super().__init__(first, shared=shared)
        for number, lease in enumerate(others):
            self.handle(on.TaskWaits(number, waits=True))
            self.handle(on.ExecutorReady(number + 1))
            self.handle(on.Retrieved([lease]))
            assert self.fed == [(number + 1, lease.lease_id)]
        self.cpu_us = [0] * len(leases)
        self.light()

    def light(self, *computing: int, processes: int = 0) -> list[int]:
        """Measure all executors; those in `computing` have used a processor. Return those with the lowest weight."""
        for executor_id in computing:
            self.cpu_us[executor_id] += MEASURE_US
        for executor_id, cpu_us in enumerate(self.cpu_us):
            self.handle(on.Measured(executor_id, 1, 0, processes, cpu_us))
        self.handle(on.TimePassed(), MEASURE_US)
        (measure,) = self.of(do.Measure)
        return measure.light


def test_tasks_that_compute_although_they_say_that_they_wait_get_the_lowest_weight() -> None:
    assert Chain(*at_depths(0, 1, 2)).light(0, 1, 2) == [0, 1]


def test_tasks_that_wait_and_do_not_compute_keep_their_weight() -> None:
    worker = Chain(*at_depths(0, 1, 2))
    assert worker.light(2) == []
    worker.cpu_us[0] += MEASURE_US // 20  # a task that waits still handles what arrives
    assert worker.light(2) == []


def test_of_tasks_that_have_waited_and_all_continue_only_the_first_keeps_its_weight() -> None:
    worker = Chain(*at_depths(0, 1, 2))
    for number in (0, 1):
        worker.handle(on.TaskWaits(number, waits=False))
    assert worker.light(0, 1, 2) == [1, 2]


def test_a_task_has_its_usual_weight_again_when_another_one_has_ended() -> None:
    worker = Chain(*at_depths(0, 1, 2))
    assert worker.light(0, 1, 2) == [0, 1]
    worker.done(0, executor_id=2)
    assert worker.light(0, 1) == [1]


def test_a_task_that_gets_hardly_any_processor_time_because_of_its_weight_still_counts_as_computing() -> None:
    worker = Chain(*at_depths(0, 1, 2))
    assert worker.light(0, 1, 2) == [0, 1]
    assert worker.light(2) == [0, 1]


def test_a_task_that_has_computed_and_waits_again_gets_its_weight_back_after_some_seconds() -> None:
    """It has unpickled results, for example."""
    worker = Chain(*at_depths(0, 1, 2))
    assert worker.light(0, 2) == [0]
    assert [worker.light(2) for _ in range(LIGHT_US // MEASURE_US - 1)][-1] == [0]
    assert [worker.light(2) for _ in range(3)][-1] == []


def test_tasks_of_another_account_keep_their_weight() -> None:
    worker = Chain(*at_depths(0, 1, account="red"), *at_depths(2, account="blue"))
    assert worker.light(0, 1, 2) == [1]


def test_a_process_of_a_task_that_waits_counts_as_computing() -> None:
    assert Chain(*at_depths(0, 1, 2)).light(processes=1) == [0, 1]


def test_all_tasks_of_a_worker_that_is_not_shared_keep_their_weight() -> None:
    assert Chain(*at_depths(0, 1, 2), shared=False).light(0, 1, 2) == []
