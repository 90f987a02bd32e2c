"""An executor whose tasks are recalled again while what it passed over before lies in its channel, unread."""

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


def test_what_an_earlier_recall_skipped_is_expected_still() -> None:
    executor, record = fed(10, more=5)
    assert executor.recall(2_000) == (1, 10)
    executor.advance(1)  # it came out of the task in which it was, and passes over the others
    executor.feed(record, *record.take(5), now_us=3_000)
    assert executor.recall(200_000) == (2, 15)
    assert executor.expects(passed_over(1, 15))


def test_a_task_cannot_have_itself_run_for_nothing() -> None:
    executor, record = fed(10, more=5)
    assert not executor.expects(passed_over(0, 1))
    executor.recall(2_000)
    assert not executor.expects(passed_over(0, 1))
    assert executor.expects([ExecutorResult(0, "ok", 1), *passed_over(1, 10)])
    executor.advance(9)
    executor.feed(record, *record.take(5), now_us=3_000)
    executor.advance(1)
    assert not executor.expects(passed_over(10, 11))  # its recall was over when that was fed
    executor.recall(200_000)
    assert not executor.expects(passed_over(10, 11))
