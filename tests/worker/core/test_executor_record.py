"""Which duration is charged when the executor's claim and the agent's clock differ."""

from hypothesis import given
from hypothesis import strategies as st

from cloudpar_protocol.payloads import TaskCode
from cloudpar_worker.core.executor_record import LATENCY_US, TASK_LATENCY_US, ExecutorRecord
from cloudpar_worker.core.executor_result import SKIPPED, ExecutorResult
from cloudpar_worker.core.lease_record import LeaseRecord
from support.leases import PYTHON, lease_of


def fed(tasks: int, more: int = 0) -> tuple[ExecutorRecord, LeaseRecord]:
    """An executor that has the first tasks of a lease, which has more."""
    record = LeaseRecord(lease_of(TaskCode("0" * 64, b""), tasks + more), 0, 0)
    executor = ExecutorRecord(1, PYTHON)
    executor.feed(record, *record.take(tasks), now_us=1_000)
    return executor, record


def durations(executor: ExecutorRecord, claims: list[int], absent_at_us: int, now_us: int) -> list[int]:
    results = [ExecutorResult(index, "ok", claim) for index, claim in enumerate(claims)]
    return [result.duration_us for result in executor.audit(results, absent_at_us, now_us)]


def test_durations_that_match_the_agents_clock_are_charged_as_claimed() -> None:
    assert durations(fed(2)[0], [400_000, 590_000], 1_000_000, 1_001_000) == [400_000, 590_000]


def test_durations_above_the_agents_clock_are_cut() -> None:
    assert durations(fed(2)[0], [3_000_000, 1_000_000], 1_000_000, 1_001_000) == [750_000, 250_000]


def test_durations_far_below_the_agents_clock_are_raised() -> None:
    permitted = LATENCY_US + 1_000_000 // 20 + 2 * TASK_LATENCY_US
    assert durations(fed(2)[0], [1, 1], 1_001_000, 1_002_000) == [999_999 - permitted, 1]


def test_latency_is_not_charged() -> None:
    assert durations(fed(1)[0], [1], 1_000 + LATENCY_US, 1_000 + LATENCY_US) == [1]


def test_the_transfer_of_large_results_is_not_charged() -> None:
    executor = fed(1)[0]
    result = ExecutorResult(0, "ok", 1, bytes(10**7))
    assert executor.audit([result], 50_000, 50_000) == [result]


def charged(executor: ExecutorRecord, record: LeaseRecord, *, feeds: int, tasks: int, claim: int, takes: int) -> int:
    """The sum of all charges. The executor is fed while it is idle, and each task takes the same time."""
    total, now_us = 0, 1_000
    for _ in range(feeds):
        now_us += 1_000_000
        executor.feed(record, *record.take(tasks), now_us)
        now_us += tasks * takes
        total += sum(durations(executor, [claim] * tasks, now_us, now_us))
        executor.advance(tasks)
    return total


def idle(more: int) -> tuple[ExecutorRecord, LeaseRecord]:
    return ExecutorRecord(1, PYTHON), LeaseRecord(lease_of(TaskCode("0" * 64, b""), more), 0, 0)


def test_tiny_tasks_that_claim_nearly_no_time_are_charged_for_most_of_it() -> None:
    """Task code can change the clock of its executor, and compute for 45 us in each of many tasks."""
    assert charged(*idle(100_000), feeds=10, tasks=10_000, claim=1, takes=50) >= 0.6 * 100_000 * 50


def test_honest_tiny_tasks_are_charged_as_claimed() -> None:
    """The executor needs some microseconds for each task, and does not report them."""
    assert charged(*idle(100_000), feeds=10, tasks=10_000, claim=2, takes=15) == 100_000 * 2


def test_tasks_of_many_small_packages_are_charged_for_most_of_their_time() -> None:
    """The executor is idle after each task. What it need not explain is counted from its start, not from each task."""
    assert charged(*idle(100), feeds=100, tasks=1, claim=1, takes=9_900) >= 0.7 * 100 * 9_900


def test_the_time_for_which_an_executor_is_idle_is_not_charged() -> None:
    assert charged(*idle(100), feeds=100, tasks=1, claim=9_000, takes=9_500) == 100 * 9_000


@given(st.lists(st.tuples(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(0, 10**6)), max_size=20))
def test_charges_stay_within_the_bounds_of_the_agents_clock(steps: list[tuple[int, int, int]]) -> None:
    executor, record = idle(len(steps))
    now_us = busy_us = total = 0
    for number, (claim, takes, pause) in enumerate(steps, 1):
        executor.feed(record, *record.take(1), now_us)
        now_us, busy_us = now_us + takes, busy_us + takes
        total += sum(durations(executor, [claim], now_us, now_us))
        executor.advance(1)
        now_us += pause
        assert busy_us - busy_us // 20 - number * (LATENCY_US + TASK_LATENCY_US) <= total <= busy_us + number


@given(st.lists(st.tuples(st.integers(1, 10**6), st.integers(0, 10**6)), min_size=1, max_size=20))
def test_never_more_time_is_charged_than_has_passed(steps: list[tuple[int, int]]) -> None:
    executor, now_us, charged = fed(len(steps))[0], 1_000, 0
    for claim, step in steps:
        absent_at_us, now_us = now_us + step // 2, now_us + step
        charged += sum(durations(executor, [claim], absent_at_us, now_us))
    assert charged <= now_us - 1_000 + len(steps)  # each task is charged at least one microsecond


def skipped(start: int, end: int) -> list[ExecutorResult]:
    return [ExecutorResult(index, SKIPPED, 0) for index in range(start, end)]


def test_results_of_an_earlier_recall_are_still_expected() -> None:
    executor, record = fed(10, more=5)
    assert executor.recall(2_000) == (1, 10)
    executor.advance(1)  # the executor ends its task, and skips the others
    executor.feed(record, *record.take(5), now_us=3_000)
    assert executor.recall(200_000) == (2, 15)
    assert executor.expects(skipped(1, 15))


def test_a_skipped_result_of_a_task_that_was_not_recalled_is_garbage() -> None:
    executor, record = fed(10, more=5)
    assert not executor.expects(skipped(0, 1))
    executor.recall(2_000)
    assert not executor.expects(skipped(0, 1))
    assert executor.expects([ExecutorResult(0, "ok", 1), *skipped(1, 10)])
    executor.advance(9)
    executor.feed(record, *record.take(5), now_us=3_000)
    executor.advance(1)
    assert not executor.expects(skipped(10, 11))  # this run was fed after the recall
    executor.recall(200_000)
    assert not executor.expects(skipped(10, 11))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=50), st.integers(0, 20))
def test_no_claim_makes_the_audit_fail(claims: list[int], passed_us: int) -> None:
    executor = fed(len(claims))[0]
    for claim in claims:
        durations(executor, [claim], 1_000 + passed_us, 1_000 + passed_us)


def test_time_before_a_skipped_task_is_charged_with_the_next_task_that_is_not_skipped() -> None:
    executor, record = fed(3, more=1)
    executor.recall(2_000)
    executor.audit([ExecutorResult(0, "ok", 1)], 3_000, 3_000)
    executor.advance(1)
    assert executor.audit(skipped(1, 3), 1_000_000, 1_000_000) == skipped(1, 3)
    executor.advance(2)
    executor.feed(record, *record.take(1), now_us=2_000_000)
    permitted = 2 * LATENCY_US + 999_100 // 20 + 4 * TASK_LATENCY_US
    assert durations(executor, [1], 2_000_100, 2_000_100) == [999_099 - permitted]


def test_a_skipped_task_cannot_claim_the_time_that_is_charged() -> None:
    executor = fed(3)[0]
    executor.recall(2_000)
    found = executor.audit([ExecutorResult(0, "ok", 1), ExecutorResult(1, SKIPPED, 10**6)], 1_001_000, 1_001_000)
    assert found[0].duration_us == 1_000_000 - (LATENCY_US + 1_000_000 // 20 + 2 * TASK_LATENCY_US)
