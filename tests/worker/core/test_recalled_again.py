"""A second recall while results of the first one are still unread in the executor's channel."""

from cloudpar_protocol.payloads import TaskCode
from cloudpar_worker.core.executor_record import ExecutorRecord
from cloudpar_worker.core.executor_result import SKIPPED, ExecutorResult
from cloudpar_worker.core.lease_record import LeaseRecord
from worker.leases import PYTHON, lease_of


def fed(tasks: int, more: int) -> tuple[ExecutorRecord, LeaseRecord]:
    record = LeaseRecord(lease_of(TaskCode("0" * 64, b""), tasks + more), 0, 0)
    executor = ExecutorRecord(1, PYTHON)
    executor.feed(record, *record.take(tasks), now_us=1_000)
    return executor, record


def passed_over(start: int, end: int) -> list[ExecutorResult]:
    return [ExecutorResult(index, SKIPPED, 0) for index in range(start, end)]


def test_results_of_an_earlier_recall_are_still_expected() -> None:
    executor, record = fed(10, more=5)
    assert executor.recall(2_000) == (1, 10)
    executor.advance(1)  # the executor ends its task, and skips the others
    executor.feed(record, *record.take(5), now_us=3_000)
    assert executor.recall(200_000) == (2, 15)
    assert executor.expects(passed_over(1, 15))


def test_a_skipped_result_of_a_task_that_was_not_recalled_is_garbage() -> None:
    executor, record = fed(10, more=5)
    assert not executor.expects(passed_over(0, 1))
    executor.recall(2_000)
    assert not executor.expects(passed_over(0, 1))
    assert executor.expects([ExecutorResult(0, "ok", 1), *passed_over(1, 10)])
    executor.advance(9)
    executor.feed(record, *record.take(5), now_us=3_000)
    executor.advance(1)
    assert not executor.expects(passed_over(10, 11))  # this run was fed after the recall
    executor.recall(200_000)
    assert not executor.expects(passed_over(10, 11))
