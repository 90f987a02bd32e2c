"""Which decisions an agent with many executors makes after each result."""

import signal

import pytest

from cloudpar_worker.core import assignment, decisions
from cloudpar_worker.core import instructions as do
from cloudpar_worker.core import stimuli as on
from cloudpar_worker.core.choosing import choose
from cloudpar_worker.core.executor_record import ExecutorRecord
from cloudpar_worker.core.executor_result import ExecutorResult
from cloudpar_worker.core.facts import Facts
from cloudpar_worker.core.lease_record import LeaseRecord
from support.leases import lease_of
from worker.driven import CODE, Worker

EXECUTORS = 40
TASK_US = 60_000


@pytest.fixture
def busy() -> Worker:
    """40 executors, each in a task of 60 ms of one package; 80 more tasks wait here, in 40 leases."""
    leases = [lease_of(CODE, 3, start=3 * number, mean_us=TASK_US, package_id="a" * 32) for number in range(EXECUTORS)]
    worker = Worker(*leases, executors=EXECUTORS)
    assert len(worker.of(do.Feed)) == EXECUTORS
    worker.handle(on.TimePassed(), TASK_US)
    return worker


def _ends_task(worker: Worker, executor_id: int, after_us: int = 100) -> None:
    executor = worker.state.facts.executors[executor_id]
    result = ExecutorResult(executor.position()[1], "ok", TASK_US, b"")
    worker.handle(on.Results(executor_id, [result], worker.now), after_us)


def test_a_lease_is_chosen_only_for_the_executor_that_is_free(busy: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen_for = []

    def spy(facts: Facts, executor: ExecutorRecord, ready: list[LeaseRecord], now_us: int) -> LeaseRecord | None:
        chosen_for.append(executor.executor_id)
        return choose(facts, executor, ready, now_us)

    monkeypatch.setattr(assignment, "choose", spy)
    _ends_task(busy, 7, after_us=2 * decisions.FULL_US)
    assert chosen_for == [7]
    assert [fed.executor_id for fed in busy.of(do.Feed)] == [7]


def test_after_results_of_a_running_package_only_their_executor_is_decided(
    busy: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "decide", lambda *_: pytest.fail("everything was looked at"))
    for executor_id in range(EXECUTORS):
        _ends_task(busy, executor_id)
        assert [fed.executor_id for fed in busy.of(do.Feed)] == [executor_id]


def test_results_that_come_continuously_are_published_in_time(busy: Worker) -> None:
    for _ in range(6):
        busy.handle(on.TimePassed(), TASK_US // 2)
        for executor_id in range(EXECUTORS):
            if busy.state.facts.executors[executor_id].running:
                _ends_task(busy, executor_id, after_us=TASK_US // 2 // EXECUTORS)
    assert busy.published


def test_a_packages_last_result_is_published_at_once_while_its_executor_works_on(busy: Worker) -> None:
    small = lease_of(CODE, 1, mean_us=TASK_US, package_id="b" * 32)
    busy.handle(on.Retrieved([small]))
    _ends_task(busy, 3)
    assert [fed.lease.package_id for fed in busy.of(do.Feed)] == [small.package_id]
    busy.handle(on.TimePassed(), TASK_US)
    _ends_task(busy, 3)
    assert [fed.lease.package_id for fed in busy.of(do.Feed)] == ["a" * 32]
    assert (small.package_id, 1) in busy.published


def test_failed_starts_are_forgotten_once_an_executor_has_ended_a_task() -> None:
    worker = Worker(executors=1)
    waits_us: list[int] = []
    for number in range(8):
        worker.handle(on.ExecutorGone(number, -signal.SIGKILL))
        waits_us.append(worker.state.facts.spawn_at_us - worker.now)
        worker.handle(on.TimePassed(), waits_us[-1])
        worker.handle(on.ExecutorReady(number + 1))
    assert waits_us[-2] == waits_us[-1] > 30 * waits_us[0]
    worker.handle(on.Retrieved([lease_of(CODE, 1)]))
    worker.done(0, executor_id=8)
    worker.handle(on.ExecutorGone(8, -signal.SIGKILL))
    worker.handle(on.ExecutorReady(9))
    worker.handle(on.ExecutorGone(9, -signal.SIGKILL))
    assert worker.state.facts.spawn_at_us - worker.now == waits_us[0]
