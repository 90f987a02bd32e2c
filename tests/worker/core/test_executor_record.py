"""Which duration is charged when the executor's claim and the agent's clock differ."""

from hypothesis import given
from hypothesis import strategies as st

from cloudpar_protocol.payloads import TaskCode
from cloudpar_worker.core.executor_record import LATENCY_US, ExecutorRecord
from cloudpar_worker.core.executor_result import SKIPPED, ExecutorResult
from cloudpar_worker.core.lease_record import LeaseRecord
from worker.leases import PYTHON, lease_of


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
    assert durations(fed(2)[0], [1, 1], 1_001_000, 1_002_000) == [999_999, 1]


def test_latency_is_not_charged() -> None:
    assert durations(fed(1)[0], [1], 1_000 + LATENCY_US, 1_000 + LATENCY_US) == [1]


def test_the_transfer_of_large_results_is_not_charged() -> None:
    executor = fed(1)[0]
    result = ExecutorResult(0, "ok", 1, bytes(10**7))
    assert executor.audit([result], 50_000, 50_000) == [result]


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
