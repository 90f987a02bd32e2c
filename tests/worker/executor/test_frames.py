"""ResultReader: which frames it takes from an executor."""

import pytest

from cloudpar_protocol.limits import BLOB_BYTES
from cloudpar_worker.core.executor_result import ExecutorResult
from cloudpar_worker.executor.frames import LENGTH, TEXTS_BYTES, Garbage, ResultReader, encode_result_into

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
