"""LeaseRecord: when downloaded data is not needed any more, and which message closes a lease."""

from cloudpar_protocol.payloads import BlobData, BlobRef, TaskResult
from cloudpar_worker.core.lease_record import LeaseRecord
from cloudpar_worker.core.publishing import publications
from support.leases import lease_of
from worker.driven import CODE


def downloaded(*segments: tuple[int, int]) -> LeaseRecord:
    """A lease whose data has arrived in these segments."""
    record = LeaseRecord(lease_of(CODE, segments[-1][1], data=BlobData(BlobRef("data", 10**6))), 0, 0)
    for segment in segments:
        record.arrived(segment, 10)
    return record


def ends(record: LeaseRecord, *indices: int) -> list[tuple[int, int]]:
    return record.finished([TaskResult(index, "ok", 1) for index in indices], 0)


def test_data_that_another_task_needs_is_kept_when_a_run_reaches_into_the_next_segment() -> None:
    record = downloaded((0, 10), (10, 20))
    assert [record.take(5), record.take(10), record.take(5)] == [(0, 5), (5, 15), (15, 20)]
    assert ends(record, *range(5, 15)) == []
    record.put_back((1, 5))  # its executor was killed in task 0, and they need their data again
    assert ends(record, 0) == []
    assert ends(record, *range(15, 20)) == [(10, 20)]
    assert record.take(4) == (1, 5)
    assert ends(record, 1, 2, 3, 4) == [(0, 10)]


def test_results_of_one_run_can_end_several_segments() -> None:
    record = downloaded((0, 2), (2, 4), (4, 6))
    assert record.take(6) == (0, 6)
    assert ends(record, *range(5)) == [(0, 2), (2, 4)]
    assert ends(record, 5) == [(4, 6)]


def test_tasks_between_others_that_are_put_back_keep_their_data() -> None:
    record = downloaded((0, 3), (3, 6))
    record.take(6)
    record.put_back((1, 2))
    assert ends(record, 0, 2, 3, 4, 5) == [(3, 6)]
    assert ends(record, 1) == [(0, 3)]


def test_a_give_back_does_not_close_a_refused_lease() -> None:
    """The publication that follows closes it, and brings the reason."""
    record = downloaded((0, 1))
    record.take(1)
    record.refuse("seal", "broken")
    record.put_back((0, 1))
    assert not record.give_back(1).closes
    record.returning = False
    (publication,) = publications(record)
    assert (publication.closes, publication.refused) == (True, "seal")
