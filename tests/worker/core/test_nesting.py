"""Executors whose tasks wait for tasks of their own: which tasks run in their place, and how many."""

from typing import Any

import pytest

from cloudpar_protocol.payloads import BlobData, BlobRef, Link
from cloudpar_protocol.worker_messages import Lease
from cloudpar_worker.core import instructions as do
from cloudpar_worker.core import stimuli as on
from cloudpar_worker.core.executor_result import ExecutorResult
from cloudpar_worker.core.nesting import LEASES, SURPLUS_US
from cloudpar_worker.core.supervision import MEASURE_US
from cloudpar_worker.executor.frames import GOES_ON, WAITS, Garbage, ResultReader, encode_result_into
from support.leases import lease_of
from worker.driven import CODE, Worker

MEMORY = 10**9
"""The memory limit of each executor."""


def parents(tasks: int = 1, **fields: Any) -> Lease:
    return lease_of(CODE, tasks, mean_us=1_000_000, **fields)


def children(tasks: int = 1, depth: int = 1) -> Lease:
    return lease_of(CODE, tasks, mean_us=1_000_000, depth=depth)


def waiting(*leases: Lease, executors: int = 1) -> Worker:
    """A worker whose executors all wait; for each, one more executor is ready."""
    worker = Worker(*leases, executors=executors)
    for number in range(executors):
        worker.handle(on.TaskWaits(number, waits=True))
        (spawned,) = worker.of(do.Spawn)
        worker.handle(on.ExecutorReady(spawned.executor_id))
    return worker


def test_an_executor_that_waits_is_replaced_by_one_for_its_tasks() -> None:
    worker = waiting(parents())
    lease = children()
    worker.handle(on.Retrieved([lease]))
    assert worker.fed == [(1, lease.lease_id)]


def test_tasks_of_a_depth_at_its_limit_of_waiting_tasks_do_not_start() -> None:
    worker = waiting(parents(5))
    assert worker.fed == []
    lease = children(2)
    worker.handle(on.Retrieved([lease]))
    assert worker.fed == [(1, lease.lease_id)]
    worker.done(0, executor_id=1)
    assert worker.fed == [(1, lease.lease_id)]


def test_running_tasks_count_against_the_limit_of_waiting_tasks() -> None:
    worker = waiting(parents(5), executors=2)
    worker.done(0)
    assert {executor_id for executor_id, _ in worker.fed} == {0}  # one of two waits, so one more task may start
    assert [each.executor_id for each in worker.state.facts.executors.values() if each.running] == [0, 1]


def test_chunks_are_retrieved_while_no_task_here_may_start() -> None:
    worker = waiting(parents())
    worker.handle(on.Retrieved([parents(5)]))
    assert [retrieve.chunks > 0 for retrieve in worker.of(do.Retrieve)] == [True]
    worker.handle(on.Retrieved([children(5)]))
    assert worker.of(do.Retrieve) == []


def test_payloads_of_tasks_that_may_not_start_are_not_downloaded() -> None:
    worker = waiting(parents())
    fields: dict[str, Any] = {"data": BlobData(BlobRef("key", 10**6)), "data_link": Link("GET", "http://master.test")}
    worker.handle(on.Retrieved([lease_of(CODE, 5, **fields)]))
    assert worker.of(do.Download) == []
    worker.handle(on.Retrieved([lease_of(CODE, 5, depth=1, **fields)]))
    assert len(worker.of(do.Download)) == 1


def test_as_many_tasks_run_beside_waiting_ones_as_there_are_executors() -> None:
    worker = waiting(parents(2), executors=2)
    lease = children(5)
    worker.handle(on.Retrieved([lease]))
    assert [executor_id for executor_id, _ in worker.fed] == [2, 3]
    worker.handle(on.TaskWaits(0, waits=False))
    worker.handle(on.Results(2, [ExecutorResult(0, "ok", 1_000_000, b"")], worker.now), after_us=1_000_000)
    assert worker.fed == []  # the first task goes on, in the place of this one
    worker.handle(on.Results(0, [ExecutorResult(0, "ok", 1_000_000, b"")], worker.now))
    assert len(worker.fed) == 1


def test_surplus_executors_stay_for_a_while() -> None:
    worker = waiting(parents())
    worker.handle(on.TaskWaits(0, waits=False))
    worker.done(0)
    assert worker.of(do.Kill) == []
    worker.handle(on.TimePassed(), after_us=SURPLUS_US)
    assert len(worker.of(do.Kill)) == 1
    worker.handle(on.TimePassed())
    assert (worker.of(do.Kill), worker.of(do.Spawn), worker.state.facts.nested) == ([], [], False)


@pytest.mark.parametrize("running", [True, False], ids=["fed_while_it_runs", "fed_when_it_is_free"])
def test_another_accounts_task_gets_the_surplus_executor_before_more_work_of_the_first_account(running: bool) -> None:
    worker = waiting(parents(account="ann"))
    worker.handle(on.TaskWaits(0, waits=False))
    worker.done(0)
    mean_us = 40_000 if running else 1_000_000
    worker.handle(on.Retrieved([lease_of(CODE, 8, mean_us=mean_us, account="ann")]))
    bob = lease_of(CODE, 1, account="bob")
    worker.handle(on.Retrieved([bob]), after_us=100_000)
    for index in range(8):
        if (1, bob.lease_id) in worker.fed:
            break
        worker.handle(on.Results(0, [ExecutorResult(index, "ok", mean_us, b"")], worker.now), after_us=mean_us)
    # Short tasks of its own account may keep an executor for 50 ms.
    assert index <= 3
    assert worker.of(do.Kill) == []


def test_a_task_that_ends_while_it_waits_counts_as_waiting_no_longer() -> None:
    worker = waiting(parents(2))
    worker.done(0)
    assert len(worker.fed) == 1
    assert not any(executor.awaits for executor in worker.state.facts.executors.values())


def test_the_memory_of_waiting_tasks_reduces_the_limit_of_running_ones() -> None:
    worker = waiting(parents())
    worker.handle(on.Retrieved([children()]))
    worker.handle(on.Measured(0, 6 * MEMORY // 10, 0))
    worker.handle(on.Measured(1, 3 * MEMORY // 10, 0))
    assert worker.of(do.Kill) == []
    worker.handle(on.Measured(1, 5 * MEMORY // 10, 0))
    assert [kill.executor_id for kill in worker.of(do.Kill)] == [1]


def test_of_waiting_tasks_with_too_much_memory_the_latest_is_stopped_first() -> None:
    worker = waiting(parents())
    worker.handle(on.Retrieved([children()]))
    worker.handle(on.TaskWaits(1, waits=True))
    worker.handle(on.Measured(0, 5 * MEMORY // 10, 0))
    worker.handle(on.Measured(1, 2 * MEMORY // 10, 0))
    assert worker.of(do.Kill) == []
    worker.handle(on.Measured(1, 3 * MEMORY // 10, 0))
    assert [kill.executor_id for kill in worker.of(do.Kill)] == [1]
    stop = worker.state.facts.executors[1].stop
    assert stop is not None
    assert (stop.outcome, "2 tasks of this worker that wait for tasks of their own hold 762 MB" in stop.message) == (
        "memory", True,
    )  # fmt: skip


def test_a_waiting_suspect_does_not_keep_its_own_tasks_from_running() -> None:
    worker = waiting(parents(attempt=3))
    lease = children()
    worker.handle(on.Retrieved([lease]))
    assert worker.fed == [(1, lease.lease_id)]
    assert worker.of(do.GiveBackTasks) == []


def test_a_mark_belongs_to_the_task_after_the_last_result() -> None:
    frame = bytearray()
    encode_result_into(ExecutorResult(0, "ok", 1, b""), frame)
    reader = ResultReader(10**6)
    assert (reader.feed(bytes(frame)), reader.mark()) != ([], True)
    assert (len(reader.feed(WAITS + bytes(frame))), reader.mark()) == (1, None)
    assert (len(reader.feed(bytes(frame) + WAITS)), reader.mark(), reader.mark()) == (1, True, None)
    assert (reader.feed(WAITS + GOES_ON), reader.mark()) == ([], False)
    with pytest.raises(Garbage):
        reader.feed(b"\1\0\0\0\2")


def test_a_worker_with_very_many_leases_runs_them_beside_waiting_tasks() -> None:
    worker = waiting(parents())
    worker.handle(on.Retrieved([parents() for _ in range(LEASES - 2)]))
    assert worker.fed == []
    last = parents()
    worker.handle(on.Retrieved([last]))
    assert len(worker.fed) == 1


def test_a_task_that_waits_again_and_again_is_measured_as_often_as_others() -> None:
    """Otherwise task code could make the agent measure all the time."""
    worker = waiting(parents())
    measured = 0
    for number in range(1_000):
        worker.handle(on.TaskWaits(0, waits=number % 2 == 0), after_us=100)
        measured += len(worker.of(do.Measure))
    assert measured <= 1_000 * 100 // MEASURE_US + 1
