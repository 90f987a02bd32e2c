"""What a head says about its package: bytes, work that is left, and its first state."""

import pytest
from msgspec.structs import replace

from cloudpar_master.core.head import BLOB_BYTES, SCHEMA, Head, OpenRange, Spec, cut, number_of, size_of
from cloudpar_master.core.head.package import PACKAGE_BYTES
from cloudpar_protocol.client_messages import StartTasks
from cloudpar_protocol.payloads import BlobData, BlobRef, InlineData, RangeData, TaskCode, TaskData
from master.core.folds import NOW, running
from support.heads import altered

ITEMS = InlineData([b"12345"] * 4)
BLOB = BlobData(BlobRef("tasks/p", 1_000))
NUMBERS = RangeData(0, 1)
INLINE_CODE, BLOB_CODE = TaskCode("0" * 64, b"code"), TaskCode("0" * 64, blob=BlobRef("code/a", 70_000))


def spec(data: TaskData = ITEMS, code: TaskCode = INLINE_CODE) -> Spec:
    start = StartTasks(idempotency_key="key", n=4, code=code, data=data, name="name", python="3.11", chunksize=2)
    return Spec(package_id="p", account_id="a", request_hash="1" * 64, start=start, started_at=NOW)


def test_the_first_head_of_a_package_has_what_its_request_says() -> None:
    head = Head.first(spec(), window=8)
    assert (head.package_id, head.account_id, head.name, head.codec) == ("p", "a", "name", "pickle")
    assert (head.started_at, head.now, head.version, head.page) == (NOW, NOW, 0, 0)
    assert (head.tasks.count, head.tasks.chunksize, head.uncut, head.pace.window) == (4, 2, 4, 8)


def test_only_a_package_whose_tasks_are_pickled_needs_the_clients_version_of_python() -> None:
    pickled = spec()
    by_reference = replace(pickled, start=replace(pickled.start, codec="msgpack"))
    assert Head.first(pickled, 8).python == "3.11"
    assert (Head.first(by_reference, 8).codec, Head.first(by_reference, 8).python) == ("msgpack", "")


@pytest.mark.parametrize(
    ("data", "data_bytes", "uploaded_bytes", "stored_bytes"),
    [
        (ITEMS, ITEMS.size, 0, ITEMS.size),
        (NUMBERS, 0, 0, 0),
        (BLOB, 1_000, 1_000 + BLOB_BYTES, 1_000 + BLOB_BYTES),
    ],
    ids=["inline", "range", "blob"],
)
def test_task_data_is_stored_and_in_the_blob_store_it_counts_as_an_upload(
    data: TaskData, data_bytes: int, uploaded_bytes: int, stored_bytes: int
) -> None:
    head = Head.first(spec(data), 8)
    assert (size_of(data), head.data_bytes) == (data_bytes, data_bytes)
    assert (head.uploaded_bytes, head.life.stored_bytes) == (uploaded_bytes, stored_bytes)


def test_a_blob_counts_64_kib_more_than_its_size() -> None:
    """This is more than the `kept_bytes` of AWS. So the master does not keep blobs until the tombstone goes."""
    assert Head.first(spec(BLOB), 8).life.stored_bytes == 1_000 + 65_536


def test_a_package_counts_its_records_its_inline_code_and_what_it_stores_but_not_its_uploads() -> None:
    inline, uploaded = Head.first(spec(), 8), Head.first(spec(BLOB, BLOB_CODE), 8)
    assert inline.counted_bytes == PACKAGE_BYTES + len(b"code") + ITEMS.size
    assert uploaded.counted_bytes == PACKAGE_BYTES
    assert altered(uploaded, stored_bytes=uploaded.life.stored_bytes + 500).counted_bytes == PACKAGE_BYTES + 500


def test_a_tombstone_counts_its_records_only() -> None:
    assert altered(Head.first(spec(), 8), deleted_at=NOW).counted_bytes == PACKAGE_BYTES == 4_096


def test_a_head_of_an_earlier_release_that_counts_less_than_its_uploads_adds_nothing() -> None:
    assert altered(Head.first(spec(BLOB, BLOB_CODE), 8), stored_bytes=0).counted_bytes == PACKAGE_BYTES


@pytest.mark.parametrize("code", [INLINE_CODE, BLOB_CODE], ids=["inline", "blob"])
def test_the_spec_of_a_deleted_package_keeps_all_but_its_data_and_inline_code(code: TaskCode) -> None:
    """Its client may repeat the request, and get the same package for the same idempotency key."""
    whole = spec(code=code)
    freed = whole.freed()
    assert (freed.start.data, freed.start.code.inline) == (InlineData([]), b"" if code is INLINE_CODE else None)
    assert replace(freed, start=replace(freed.start, data=ITEMS, code=code)) == whole


def test_the_stand_in_of_an_unreadable_head_is_a_failed_package_without_tasks_that_no_master_folds() -> None:
    head = Head.stand_in("p", "a", NOW, 7, "a flipped bit")
    assert (head.package_id, head.account_id, head.started_at, head.now, head.version) == ("p", "a", NOW, NOW, 7)
    assert (head.life.state, head.life.reason, head.life.message) == ("failed", "unreadable", "a flipped bit")
    assert (head.tasks.count, head.pace.window) == (0, 0)
    assert (head.foreign, head.damaged) == (True, True)


def test_a_master_folds_heads_of_its_own_schema_and_earlier_ones_but_not_of_later_ones() -> None:
    heads = [altered(running(), schema=schema) for schema in (SCHEMA - 1, SCHEMA, SCHEMA + 1)]
    assert [head.foreign for head in heads] == [False, False, True]
    assert [head.damaged for head in heads] == [False, False, False]


def test_a_package_that_starts_a_millisecond_later_under_the_same_id_is_charged_under_another_id() -> None:
    """The account may still remember the charge of a package that the master has forgotten."""
    assert [altered(running(), started_at=at).billing_id for at in (1.0, 1.001)] == ["p@1000", "p@1001"]


def test_idle_executors_make_a_package_cut_chunks_unless_it_has_to_wait_for_compute_time() -> None:
    head = running()
    spent = altered(head, reserved_us=0)
    assert head.cuttable
    assert altered(spent, ask_again_at=NOW).cuttable
    assert altered(head, ask_again_at=NOW + 1).cuttable
    assert not altered(spent, ask_again_at=NOW + 1).cuttable
    assert altered(head, cursor=99).cuttable
    assert not altered(head, cursor=100).cuttable
    assert not altered(head, state="cancelled").cuttable


def test_the_unfinished_tasks_of_a_package_are_those_in_chunks_and_those_in_none() -> None:
    head = altered(running(), open=[OpenRange(3, 5, 2), OpenRange(7, 9, 2)], cursor=40)
    assert head.unfinished == [(3, 5), (7, 9), (40, 100)]
    assert altered(head, cursor=100).unfinished == [(3, 5), (7, 9)]
    assert altered(head, state="failed").unfinished == []


def test_only_a_completed_package_with_failed_tasks_has_the_state_error() -> None:
    heads = [
        altered(running(), state=state, errors=errors) for state in ("completed", "cancelled") for errors in (0, 1)
    ]
    assert [head.client_state for head in heads] == ["completed", "error", "cancelled", "cancelled"]


def test_a_draft_shares_nothing_that_a_fold_may_change_with_its_head() -> None:
    """A master that loses the race to save a head folds it again."""
    head = running()
    draft = head.draft()
    for name in ("tasks", "quota", "pace", "life"):
        group, copy = getattr(head, name), getattr(draft, name)
        assert copy == group
        assert copy is not group
        for field in group.__struct_fields__:
            if isinstance(getattr(group, field), list | dict):
                assert getattr(copy, field) is not getattr(group, field), field


@pytest.mark.parametrize(
    ("text", "size_bytes", "start"), [("naïve", 4, "naï"), ("naïve", 3, "na"), ("a\ud800b", 9, "a?b"), ("", 5, "")]
)
def test_a_text_is_cut_between_characters_and_a_lone_surrogate_is_replaced(
    text: str, size_bytes: int, start: str
) -> None:
    """A message with one would otherwise make its head impossible to store."""
    assert cut(text, size_bytes) == start


def test_a_worker_with_a_long_id_takes_a_small_number_in_the_head() -> None:
    assert 0 <= number_of("w" * 800) < 2**32
    assert number_of("w1") != number_of("w2")
