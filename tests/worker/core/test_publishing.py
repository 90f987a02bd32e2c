"""Publications and requests stay within the protocol's limits, and contain every result."""

from hypothesis import given
from hypothesis import strategies as st

from cloudpar_protocol import codec
from cloudpar_protocol.limits import BODY_BYTES, BULK_ITEMS, INLINE_RESULT_BYTES, PUBLICATION_BYTES, PUBLICATION_TASKS
from cloudpar_protocol.payloads import TaskCode, TaskResult
from cloudpar_protocol.worker_messages import PublishResults
from cloudpar_worker.core.lease_record import LeaseRecord
from cloudpar_worker.core.publishing import LARGE_BYTES, publications, requests, result_bytes, split
from support.leases import lease_of

SIZES = st.one_of(st.integers(0, 100), st.integers(30_000, INLINE_RESULT_BYTES), st.just(10**6), st.just(LARGE_BYTES))
ZEROS = b"0" * LARGE_BYTES


def result(index: int, size: int, text: int = 0) -> TaskResult:
    return TaskResult(index, "ok", 1, ZEROS[:size], stdout="é" * (text // 2) or None)


@given(st.lists(st.tuples(SIZES, st.integers(0, 65_536)), max_size=60))
def test_parts_of_results_fit_into_one_publication_each(sizes: list[tuple[int, int]]) -> None:
    results = [result(index, *size) for index, size in enumerate(sizes)]
    parts = list(split(results))
    assert [one for part in parts for one in part] == results
    for part in parts:
        inline = [one for one in part if one.data is not None and len(one.data) <= INLINE_RESULT_BYTES]
        assert sum(len(codec.encode(one)) for one in inline) <= PUBLICATION_BYTES
        large = [len(one.data or b"") for one in part if one not in inline]
        assert sum(large) <= LARGE_BYTES or len(large) == 1


def test_many_small_results_are_split_by_number() -> None:
    parts = list(split([result(index, 1) for index in range(PUBLICATION_TASKS + 1)]))
    assert [len(part) for part in parts] == [PUBLICATION_TASKS, 1]


def test_the_last_publication_of_a_finished_lease_closes_it() -> None:
    record = LeaseRecord(lease_of(TaskCode("0" * 64, b""), 9_000, wait_us=5), 0, 70)
    while record.ready:
        taken = record.take(1_000)
        record.finished([result(index, 1) for index in range(*taken)], 1)
    record.report_cost({record.lease.package_id: 30})
    made = publications(record)
    assert [publication.closes for publication in made] == [False, False, True]
    assert [publication.seq for publication in made] == [0, 1, 2]
    assert [publication.retrieve_us for publication in made] == [70, 0, 0]
    assert [publication.publish_us for publication in made] == [30, 0, 0]
    assert record.published() == 9_000


@given(st.lists(st.integers(1, 8), min_size=1, max_size=150))
def test_parts_of_publications_fit_into_one_request_each(counts: list[int]) -> None:
    made = []
    for count in counts:
        record = LeaseRecord(lease_of(TaskCode("0" * 64, b""), count), 0, 0)
        record.finished([result(index, INLINE_RESULT_BYTES - 100) for index in range(*record.take(count))], 1)
        made += publications(record)
    sent = list(requests(made))
    assert [publication for part in sent for publication in part] == made
    for part in sent:
        assert len(part) <= BULK_ITEMS
        assert len(codec.encode(PublishResults(worker_id="w", executors=1, publications=part))) <= BODY_BYTES


@given(st.integers(0, 10**5), st.text(max_size=100))
def test_the_computed_size_of_a_result_is_never_too_small(size: int, text: str) -> None:
    one = TaskResult(10**7, "unpicklable", 2**40, ZEROS[: min(size, INLINE_RESULT_BYTES)], None, text, text, text, text)
    assert result_bytes(one) >= len(codec.encode(one)) - 8
