"""Tasks behind a long one are recalled and run elsewhere: the executor that skips them is in none of them."""

import signal

import pytest

from cloudpar_protocol import ranges
from cloudpar_protocol.worker_messages import LeaseView
from cloudpar_worker.core import instructions as do
from cloudpar_worker.core import stimuli as on
from cloudpar_worker.core.executor_record import SKIP_US
from cloudpar_worker.core.executor_result import SKIPPED, ExecutorResult
from cloudpar_worker.core.supervision import RECALL_VISIBLE_US, STUCK_US
from support.leases import lease_of
from worker.driven import CODE, Worker

TASKS = 8
LEASE = lease_of(CODE, TASKS, mean_us=20_000)


@pytest.fixture
def worker() -> Worker:
    """Executor 0 has ended task 0 and not yet skipped 1 to 3; executor 1 has run 1, 4 and 5, and is in task 2."""
    worker = Worker(LEASE, executors=2)
    assert [(feed.executor_id, feed.tasks) for feed in worker.of(do.Feed)] == [(0, (0, 4)), (1, (4, 6))]
    worker.handle(on.TimePassed(), STUCK_US)
    assert 0 in [recall.executor_id for recall in worker.of(do.Recall)]
    worker.handle(on.TimePassed(), RECALL_VISIBLE_US)
    worker.handle(on.RecallChecked(0, 1))
    ends(worker, 1, 4, 5, 1)
    ends(worker, 0, 0)
    assert worker.state.facts.executors[1].position() == (LEASE.lease_id, 2)
    return worker


def ends(worker: Worker, executor_id: int, *indices: int) -> None:
    """An executor has run these tasks."""
    for index in indices:
        worker.done(index, executor_id)


def publishes(worker: Worker) -> None:
    """The master takes the results that the worker has; it wants the other tasks."""
    while not worker.state.facts.leases[LEASE.lease_id].publishing:
        worker.handle(on.TimePassed(), 10_000)
    left = ranges.subtract([(0, TASKS)], ranges.of(sorted(worker.published_tasks)))
    view = LeaseView(lease_id=LEASE.lease_id, state="wanted" if left else "finished", ranges=left, budget_us=10**12)
    worker.handle(on.Published([LEASE.lease_id], [view], hungry=False, request_us=100))


def runs_the_rest(worker: Worker) -> None:
    """All executors end the tasks that they have, until the lease is closed: each task has one result."""
    while worker.state.facts.leases:
        for executor_id, executor in worker.state.facts.executors.items():
            if executor.running and executor.usable:
                ends(worker, executor_id, executor.position()[1])
        publishes(worker)
    assert sorted(worker.published_tasks) == list(range(TASKS))


def test_an_executor_that_skips_a_task_with_a_result_is_not_stopped(worker: Worker) -> None:
    ends(worker, 1, 2)
    publishes(worker)
    assert not worker.of(do.Kill)
    worker.handle(on.Results(0, [ExecutorResult(index, SKIPPED, 0) for index in (1, 2, 3)], worker.now))
    runs_the_rest(worker)


@pytest.mark.parametrize("code", [-signal.SIGSEGV, -signal.SIGKILL, 3])
def test_an_executor_that_ends_while_it_skips_fails_no_task(worker: Worker, code: int) -> None:
    worker.handle(on.ExecutorGone(0, code))
    runs_the_rest(worker)


def test_an_executor_that_is_stopped_while_it_skips_fails_no_task(worker: Worker) -> None:
    worker.handle(on.Measured(0, 2 * 10**9, 0))
    assert [kill.executor_id for kill in worker.of(do.Kill)] == [0]
    worker.handle(on.ExecutorGone(0, -signal.SIGKILL))
    runs_the_rest(worker)


def test_tasks_are_recalled_once(worker: Worker) -> None:
    for _ in range(3):
        worker.handle(on.TimePassed(), STUCK_US)
        assert 0 not in [recall.executor_id for recall in worker.of(do.Recall)]


def test_an_executor_that_does_not_skip_is_ended_and_fails_no_task(worker: Worker) -> None:
    worker.handle(on.TimePassed(), SKIP_US - 1)
    assert not worker.of(do.Kill)
    assert worker.state.deadline_at_us <= worker.now + 1
    worker.handle(on.TimePassed(), 1)
    assert [kill.executor_id for kill in worker.of(do.Kill)] == [0]
    worker.handle(on.ExecutorGone(0, -signal.SIGKILL))
    runs_the_rest(worker)
