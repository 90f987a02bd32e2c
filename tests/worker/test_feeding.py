"""How much is fed and fetched ahead."""

import pytest

from cloudpar_protocol.payloads import TaskCode
from cloudpar_worker.durations import PackageDurations
from cloudpar_worker.executor_record import ExecutorRecord
from cloudpar_worker.feeding import run_tasks
from cloudpar_worker.lease_record import LeaseRecord
from cloudpar_worker.prefetching import HORIZON_US, chunks_needed, remaining_us
from worker.leases import PYTHON, lease_of


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


def test_first_runs_double() -> None:
    durations = PackageDurations(0)
    sizes = []
    for _ in range(6):
        tasks = run_tasks(executor(), durations, 0, 10**6)
        durations.measured(tasks, tasks)
        sizes.append(tasks)
    assert sizes == [1, 2, 6, 18, 54, 162]


def test_large_items_travel_in_small_runs() -> None:
    assert run_tasks(executor(), PackageDurations(1), 3 << 20, 1_000) == 1


def test_the_last_tasks_are_spread() -> None:
    assert run_tasks(executor(), PackageDurations(1), 0, 7) == 7


def test_an_idle_worker_asks_for_its_executors() -> None:
    assert chunks_needed([0, 0], 0, 0, 2) == 2


def test_nothing_is_fetched_behind_a_long_task() -> None:
    assert chunks_needed([remaining_us(10**7, 10**6, 0)] * 2, 0, 10**6, 2) == 0
    assert chunks_needed([remaining_us(0, 10**6, 0)] * 2, 0, 0, 2) == 0


def test_small_chunks_are_asked_for_in_bulk() -> None:
    assert chunks_needed([0, 0], HORIZON_US, HORIZON_US / 4, 2) == 4
    assert chunks_needed([0, 0], 2 * HORIZON_US, 10, 2) == 0
