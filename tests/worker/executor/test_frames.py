"""ResultReader: which frames it takes from an executor."""

from typing import Any

import pytest

from cloudpar_protocol.limits import BLOB_BYTES
from cloudpar_protocol.payloads import TaskResult
from cloudpar_worker.core.executor_result import ExecutorResult
from cloudpar_worker.executor.frames import (
    GOES_ON,
    LENGTH,
    MARKS,
    TEXTS_BYTES,
    WAITS,
    Garbage,
    ResultReader,
    encode_file,
    encode_result_into,
)

MEMORY_BYTES = 1_000_000


def test_the_largest_result_that_fits_into_the_executors_memory_is_read() -> None:
    frame = bytearray()
    result = ExecutorResult(0, "ok", 1, bytes(MEMORY_BYTES))
    encode_result_into(result, frame)
    reader = ResultReader(MEMORY_BYTES)
    half = len(frame) // 2
    assert reader.feed(bytes(frame[:half])) == []
    assert reader.feed(bytes(frame[half:])) == [result]


@pytest.mark.parametrize(("memory_bytes", "most"), [(MEMORY_BYTES, MEMORY_BYTES), (2**40, BLOB_BYTES)])
def test_a_frame_that_the_executor_cannot_have_held_is_refused_at_its_first_bytes(memory_bytes: int, most: int) -> None:
    ResultReader(memory_bytes).feed(LENGTH.pack(most + TEXTS_BYTES))
    with pytest.raises(Garbage, match="frame of"):
        ResultReader(memory_bytes).feed(LENGTH.pack(most + TEXTS_BYTES + 1))


def test_more_marks_at_once_than_an_executor_can_write_are_refused() -> None:
    reader = ResultReader(MEMORY_BYTES)
    for _ in range(3):
        reader.feed(WAITS * (MARKS - 1) + GOES_ON)
        assert reader.mark() is False
    reader.feed(WAITS * MARKS)
    with pytest.raises(Garbage, match=f"more than {MARKS} marks at once"):
        reader.feed(WAITS)


def test_the_text_about_garbage_is_short_and_changes_no_terminal() -> None:
    frame = bytearray()
    outcome: Any = "\x1b[2J" + "x" * 1_000
    encode_result_into(TaskResult(0, outcome, 1), frame)
    with pytest.raises(Garbage) as raised:
        ResultReader(MEMORY_BYTES).feed(bytes(frame))
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) <= 200


def frame_of(result: TaskResult) -> bytes:
    frame = bytearray()
    encode_result_into(result, frame)
    return bytes(frame)


def test_the_data_of_a_result_may_come_in_a_file_before_it() -> None:
    reader = ResultReader(MEMORY_BYTES, bytes)
    whole = encode_file(7) + frame_of(TaskResult(0, "ok", 1)) + frame_of(TaskResult(1, "ok", 1, b"inline"))
    found = [result for byte in whole for result in reader.feed(bytes([byte]))]
    assert [(result.index, result.data) for result in found] == [(0, bytes(7)), (1, b"inline")]


@pytest.mark.parametrize(
    ("reader", "sent"),
    [
        (ResultReader(MEMORY_BYTES), encode_file(7)),
        (ResultReader(MEMORY_BYTES, bytes), encode_file(2**60)),
        (ResultReader(MEMORY_BYTES, bytes), 2 * encode_file(7)),
    ],
    ids=["where none may come", "larger than the memory limit", "two for one result"],
)
def test_a_file_that_no_executor_sends_is_refused(reader: ResultReader, sent: bytes) -> None:
    with pytest.raises(Garbage, match="a file of"):
        reader.feed(sent)
