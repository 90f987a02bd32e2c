"""Time that a task computes and that no result reports is charged: tasks may end their executor, or never return."""

import signal

import pytest

from cloudpar_protocol.worker_messages import Lease, LeaseView
from cloudpar_worker.core import instructions as do
from cloudpar_worker.core import outcomes
from cloudpar_worker.core import stimuli as on
from cloudpar_worker.core.executor_record import SKIP_US
from cloudpar_worker.core.executor_result import SKIPPED, UNFIT, ExecutorResult
from cloudpar_worker.core.supervision import IDLE_MEASURE_US, RECALL_VISIBLE_US, STUCK_US
from support.leases import lease_of
from worker.driven import CODE, Worker

LONG_US = 10_000_000
SOON_US = 10_000
"""The steps of a test take less than this."""


def newest(worker: Worker) -> int:
    """Report that the executor that was forked last is ready; return it."""
    executor_id = worker.state.facts.next_executor - 1
    if not worker.state.facts.executors[executor_id].ready:
        worker.handle(on.ExecutorReady(executor_id))
    return executor_id


def ends_itself(worker: Worker, after_us: int = LONG_US) -> None:
    """The running task computes, and then kills its executor."""
    executor_id = newest(worker)
    worker.handle(on.TimePassed(), after_us)
    worker.handle(on.ExecutorGone(executor_id, -signal.SIGKILL))


def is_about(measured_us: int, expected_us: int) -> bool:
    return 0.94 * expected_us <= measured_us <= expected_us + SOON_US  # the agent permits a difference of about 5 %


def ended(worker: Worker, lease: Lease) -> None:
    """The master says that the package has ended."""
    worker.handle(on.Extended([LeaseView(lease_id=lease.lease_id, state="ended")]))


def test_the_time_of_a_task_that_kills_its_executor_is_charged_with_its_result() -> None:
    worker = Worker(lease_of(CODE, 1))
    ends_itself(worker)
    ends_itself(worker)
    assert worker.charged_us == []
    worker.done(0, newest(worker))
    assert len(worker.charged_us) == 1
    assert is_about(worker.charged_us[0], 2 * LONG_US)


def test_a_task_that_kills_its_executor_too_often_is_charged_for_every_try() -> None:
    worker = Worker(lease_of(CODE, 1))
    for _ in range(outcomes.KILLS):
        ends_itself(worker)
    assert len(worker.charged_us) == 1
    assert is_about(worker.charged_us[0], outcomes.KILLS * LONG_US)


def test_the_time_of_a_task_that_killed_its_executor_and_is_cancelled_is_charged() -> None:
    """The task waits for another executor, and never runs again, so it has no other result."""
    lease = lease_of(CODE, 1)
    worker = Worker(lease)
    ends_itself(worker)
    ended(worker, lease)
    assert worker.published_tasks == [0]
    assert is_about(worker.charged_us[0], LONG_US)


def test_a_task_that_never_started_is_not_published_when_it_is_cancelled() -> None:
    lease = lease_of(CODE, 3)
    worker = Worker(lease)
    ends_itself(worker)
    ended(worker, lease)
    assert worker.published_tasks == [0]


def lacks(worker: Worker, index: int, executor_id: int = 0) -> None:
    """A task computes, and then says that the worker lacks something."""
    worker.handle(on.TimePassed(), LONG_US)
    worker.handle(on.Results(executor_id, [ExecutorResult(index, UNFIT, LONG_US, message="numpy")], worker.now))


def test_the_time_of_a_cancelled_task_that_lacks_something_is_charged() -> None:
    """The task does not go back, so no give-back can report its time."""
    lease = lease_of(CODE, 1, elsewhere=True)
    worker = Worker(lease)
    ended(worker, lease)
    lacks(worker, 0)
    assert worker.returned == []
    assert worker.published_tasks == [0]
    assert is_about(worker.charged_us[0], LONG_US)


def test_time_that_a_give_back_can_no_longer_report_is_charged_with_the_next_result() -> None:
    """The second task lacks something while the give-back of the first one is under way; then both are cancelled."""
    lease = lease_of(CODE, 2, elsewhere=True)
    worker = Worker(lease, executors=2)
    lacks(worker, 0)
    assert [is_about(back.used_us, LONG_US) for back in worker.returned] == [True]
    lacks(worker, 1, executor_id=1)
    assert worker.returned == []
    ended(worker, lease)
    worker.handle(on.GivenBack([lease.lease_id]))
    worker.handle(on.Published([lease.lease_id], [], hungry=False, request_us=1))
    assert worker.state.facts.leases == {}
    assert is_about(worker.state.facts.budgets.pay("account-1"), 2 * LONG_US)


def test_another_package_of_the_account_is_charged_but_no_other_account() -> None:
    worker = Worker(lease_of(CODE, 1, account="red"), executors=2)
    worker.handle(on.Retrieved([lease_of(CODE, 1, account="blue")]))
    worker.handle(on.TimePassed(), LONG_US)
    worker.handle(on.ExecutorGone(0, None))
    worker.done(0, 1)
    (blue_us,) = worker.charged_us
    assert is_about(blue_us, LONG_US), "its own time"
    assert worker.state.facts.budgets.pay("blue") == 0
    assert is_about(worker.state.facts.budgets.pay("red"), LONG_US)


def test_time_that_is_not_reported_yet_counts_against_the_budget() -> None:
    worker = Worker(lease_of(CODE, 1, budget_us=LONG_US + LONG_US // 2))
    ends_itself(worker)
    executor_id = newest(worker)
    worker.handle(on.TimePassed(), LONG_US // 2)
    assert [kill.executor_id for kill in worker.of(do.Kill)] == [executor_id]
    worker.handle(on.ExecutorGone(executor_id, -signal.SIGKILL))
    assert is_about(worker.charged_us[0], LONG_US + LONG_US // 2)


@pytest.fixture
def skipping() -> Worker:
    """Executor 0 has ended task 0 and has to skip tasks 1 to 3; they are back in their lease."""
    worker = Worker(lease_of(CODE, 4, mean_us=20_000), executors=1)
    assert [feed.tasks for feed in worker.of(do.Feed)] == [(0, 4)]
    worker.handle(on.TimePassed(), STUCK_US)
    worker.handle(on.TimePassed(), RECALL_VISIBLE_US)
    worker.handle(on.RecallChecked(0, 1))
    worker.handle(on.Results(0, [ExecutorResult(0, "ok", STUCK_US, b"")], worker.now))
    return worker


def test_a_result_of_a_recalled_task_ends_the_executor_and_its_time_is_charged(skipping: Worker) -> None:
    """The task is back in its lease, so this result of it would be dropped."""
    skipping.handle(on.TimePassed(), SKIP_US // 2)
    skipping.handle(on.Results(0, [ExecutorResult(1, "ok", SKIP_US // 2, b"")], skipping.now))
    assert [kill.executor_id for kill in skipping.of(do.Kill)] == [0]
    skipping.handle(on.ExecutorGone(0, -signal.SIGKILL))
    assert is_about(skipping.state.facts.budgets.pay("account-1"), SKIP_US // 2)


def test_the_time_of_an_executor_that_does_not_skip_is_charged(skipping: Worker) -> None:
    skipping.handle(on.TimePassed(), SKIP_US)
    assert [kill.executor_id for kill in skipping.of(do.Kill)] == [0]
    skipping.handle(on.ExecutorGone(0, -signal.SIGKILL))
    assert is_about(skipping.state.facts.budgets.pay("account-1"), SKIP_US)


def test_an_executor_that_skips_slowly_has_no_more_time_for_many_tasks_than_for_one(skipping: Worker) -> None:
    skipping.handle(on.TimePassed(), SKIP_US // 2)
    skipping.handle(on.Results(0, [ExecutorResult(1, SKIPPED, 0)], skipping.now))
    skipping.handle(on.TimePassed(), SKIP_US // 2)
    assert [kill.executor_id for kill in skipping.of(do.Kill)] == [0]
    skipping.handle(on.ExecutorGone(0, -signal.SIGKILL))
    assert is_about(skipping.state.facts.budgets.pay("account-1"), SKIP_US)


def test_time_before_a_skipped_task_is_charged_when_the_executor_ends(skipping: Worker) -> None:
    skipping.handle(on.TimePassed(), SKIP_US // 2)
    skipping.handle(on.Results(0, [ExecutorResult(index, SKIPPED, 0) for index in (1, 2, 3)], skipping.now))
    skipping.handle(on.ExecutorGone(0, 0))
    assert SKIP_US // 3 <= skipping.state.facts.budgets.pay("account-1") <= SKIP_US


@pytest.mark.parametrize("shared", [True, False])
def test_time_that_an_idle_executor_computes_is_charged_on_a_shared_worker(shared: bool) -> None:
    worker = Worker(lease_of(CODE, 1, account="red"), shared=shared)
    worker.done(0)
    worker.handle(on.Measured(0, 1, 0, 0, cpu_us=0), after_us=IDLE_MEASURE_US)
    worker.handle(on.Measured(0, 1, 0, 0, cpu_us=IDLE_MEASURE_US), after_us=IDLE_MEASURE_US)
    assert bool(worker.of(do.Kill)) is shared
    worker.handle(on.ExecutorGone(0, -signal.SIGKILL))
    assert worker.state.facts.budgets.pay("red") == (IDLE_MEASURE_US if shared else 0)


def test_an_idle_executor_that_does_not_compute_is_not_charged() -> None:
    worker = Worker(lease_of(CODE, 1, account="red"), shared=True)
    worker.done(0)
    for _ in range(3):
        worker.handle(on.Measured(0, 1, 0, 0, cpu_us=0), after_us=IDLE_MEASURE_US)
    worker.handle(on.ExecutorGone(0, 0))
    assert worker.state.facts.budgets.pay("red") == 0
