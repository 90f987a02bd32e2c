"""How many tasks are fed ahead, and how many chunks are retrieved ahead."""

import pytest

from cloudpar_protocol.payloads import TaskCode
from cloudpar_worker.core import instructions as do
from cloudpar_worker.core import stimuli as on
from cloudpar_worker.core.durations import FUNCTIONS, SHORT_US, FunctionLengths, PackageDurations
from cloudpar_worker.core.executor_record import ExecutorRecord
from cloudpar_worker.core.executor_result import ExecutorResult
from cloudpar_worker.core.feeding import run_tasks
from cloudpar_worker.core.lease_record import LeaseRecord
from cloudpar_worker.core.prefetching import HORIZON_US, chunks_needed, remaining_us
from support.leases import PYTHON, lease_of
from worker.driven import CODE, Worker


def executor(queued: int = -1) -> ExecutorRecord:
    made = ExecutorRecord(1, PYTHON)
    if queued >= 0:
        record = LeaseRecord(lease_of(TaskCode("0" * 64, b""), queued + 1), 0, 0)
        made.feed(record, *record.take(queued + 1), now_us=1)
    return made


@pytest.mark.parametrize(
    ("mean_us", "queued", "tasks"),
    [
        (0, -1, 1),
        (0, 0, 0),
        (10**6, -1, 1),
        (10**6, 0, 0),
        (49_000, -1, 2),
        (20_000, 0, 4),
        (20_000, 3, 0),
        (994, -1, 100),
        (994, 25, 75),
        (994, 51, 0),
        (1, -1, 1000),
    ],
)
def test_runs_last_about_a_tenth_of_a_second(mean_us: int, queued: int, tasks: int) -> None:
    assert run_tasks(executor(queued), PackageDurations(mean_us), 0, 1_000) == tasks


def test_first_runs_grow_with_the_number_of_measured_tasks() -> None:
    durations = PackageDurations(0)
    sizes = []
    for _ in range(4):
        tasks = run_tasks(executor(), durations, 0, 10**6)
        durations.measured(tasks, tasks)
        sizes.append(tasks)
    assert sizes == [1, 16, 272, 2_000]


def test_queued_tasks_count_against_the_size_of_the_first_runs() -> None:
    durations = PackageDurations(0)
    durations.measured(1, 1)
    assert [run_tasks(executor(queued), durations, 0, 10**6) for queued in (0, 10, 16)] == [16, 6, 0]


def fed(worker: Worker) -> list[tuple[int, tuple[int, int]]]:
    return [(each.executor_id, each.tasks) for each in worker.of(do.Feed)]


def test_an_executor_gets_only_its_part_of_a_chunk() -> None:
    worker = Worker(lease_of(CODE, 8, mean_us=4_000), executors=2)
    assert fed(worker) == [(0, (0, 4)), (1, (4, 6))]  # the rest goes to the executor that is free first


def test_a_chunk_that_runs_faster_than_it_is_divided_goes_to_one_executor() -> None:
    worker = Worker(lease_of(CODE, 250, mean_us=1), executors=2)
    assert fed(worker) == [(0, (0, 250))]


def test_the_next_package_of_a_short_function_is_fed_at_once() -> None:
    worker = Worker(lease_of(CODE, 2), executors=2)
    assert fed(worker) == [(0, (0, 1)), (1, (1, 2))]  # the tasks may take an hour each
    for executor_id in (0, 1):
        worker.handle(on.Results(executor_id, [ExecutorResult(executor_id, "ok", 5, b"")], worker.now))
    worker.handle(on.Retrieved([lease_of(CODE, 100)]))
    assert fed(worker) == [(0, (0, 100))]
    worker.handle(on.Retrieved([lease_of(CODE, 100, account="another")]))
    assert all(tasks == (index, index + 1) for index, (_, tasks) in enumerate(fed(worker)))


def test_long_tasks_are_not_remembered_for_the_next_package_of_their_function() -> None:
    lengths, lease = FunctionLengths(), lease_of(CODE, 1)
    lengths.measured(lease, 5)
    assert lengths.mean_us(lease) == 5
    lengths.measured(lease, SHORT_US + 1)
    assert lengths.mean_us(lease) == 0


def test_durations_are_remembered_for_the_last_functions_only() -> None:
    lengths = FunctionLengths()
    leases = [lease_of(TaskCode(str(number), b""), 1) for number in range(FUNCTIONS + 1)]
    for lease in leases:
        lengths.measured(lease, 0.2)
    assert [lengths.mean_us(lease) for lease in leases[:2]] == [0, 1]


def test_large_items_are_fed_in_small_runs() -> None:
    assert run_tasks(executor(), PackageDurations(1), 3 << 20, 1_000) == 1


def test_the_last_tasks_are_spread_over_all_executors() -> None:
    assert run_tasks(executor(), PackageDurations(1), 0, 7) == 7


def test_an_idle_worker_retrieves_chunks_for_all_its_executors() -> None:
    assert chunks_needed([0, 0], 0, 0, 2) == 2


def test_no_chunk_is_retrieved_behind_a_long_task() -> None:
    assert chunks_needed([remaining_us(10**7, 10**6, 0)] * 2, 0, 10**6, 2) == 0
    assert chunks_needed([remaining_us(0, 10**6, 0)] * 2, 0, 0, 2) == 0


def test_small_chunks_are_retrieved_in_bulk() -> None:
    assert chunks_needed([0, 0], HORIZON_US, HORIZON_US / 4, 2) == 4
    assert chunks_needed([0, 0], 2 * HORIZON_US, 10, 2) == 0
