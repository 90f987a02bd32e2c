"""The task data of a package, as workers read it."""

import errno
import io
import itertools
import logging
import pickle
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudpar._serialization import packer, packing
from cloudpar._serialization.blob import Blob
from cloudpar._serialization.packer import Packer
from cloudpar._serialization.packing import Packed, pack
from cloudpar.errors import SerializationError, TooLarge
from cloudpar_protocol.limits import INLINE_DATA_BYTES, INLINE_ITEM_BYTES
from cloudpar_protocol.payloads import InlineData, RangeData
from cloudpar_protocol.seals import Seals
from cloudpar_protocol.transport.payload_folder import Draft, PayloadFolder

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def read(packed: Packed) -> list[Any]:
    """Read the data like a worker."""
    data = packed.data
    if isinstance(data, RangeData):
        return [data.start + index * data.step for index in range(packed.n)]
    if isinstance(data, InlineData):
        return [pickle.loads(item) for item in data.items]
    data.file.seek(0)
    blob = data.file.read()
    assert len(blob) == data.size
    table = struct.unpack_from(f"<{packed.n + 1}Q", blob, data.size - 8 * (packed.n + 1))
    assert table[-1] == data.size - 8 * (packed.n + 1)
    return [pickle.loads(blob[start:end]) for start, end in itertools.pairwise(table)]


@given(st.lists(VALUES, min_size=1, max_size=20))
def test_inline_data_is_read_back_unchanged(values: list[Any]) -> None:
    packed = pack(values)
    assert packed is not None
    assert isinstance(packed.data, InlineData)
    assert read(packed) == values


def test_data_travels_inline_as_long_as_the_master_takes_it() -> None:
    most = INLINE_DATA_BYTES // (1 + INLINE_ITEM_BYTES)  # None is one byte of MessagePack
    inline, blob = (pack([None] * n, codec="msgpack") for n in (most, most + 1))
    assert inline is not None
    assert isinstance(inline.data, InlineData)
    assert inline.data.size <= INLINE_DATA_BYTES < inline.data.size + 1 + INLINE_ITEM_BYTES
    assert blob is not None
    assert isinstance(blob.data, Blob)
    blob.close()


@given(st.lists(VALUES, min_size=1, max_size=20), st.integers(0, 200))
def test_data_in_a_blob_is_read_back_unchanged(values: list[Any], in_memory_bytes: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packer, "INLINE_DATA_BYTES", 0)
        patch.setattr(packer, "IN_MEMORY_BYTES", in_memory_bytes)
        packed = pack(values)
    assert packed is not None
    assert isinstance(packed.data, Blob)
    assert read(packed) == values
    packed.close()


@given(st.integers(-(2**70), 2**70), st.integers(1, 50), st.integers(-(2**65), 2**65).filter(bool))
def test_a_range_is_sent_as_start_and_step(start: int, n: int, step: int) -> None:
    values = range(start, start + n * step, step)
    packed = pack(values)
    assert packed is not None
    assert packed.n == n
    assert read(packed) == list(values)


def test_a_long_range_takes_no_memory() -> None:
    packed = pack(range(10_000_000))
    assert packed == Packed(10_000_000, RangeData(0, 1))


def test_shared_objects_are_whole_in_each_item() -> None:
    shared = ["shared"]
    packed = pack([[shared, shared], [shared]])
    assert packed is not None
    first, second = read(packed)
    assert first[0] is first[1]
    assert second == [["shared"]]


def test_no_values_make_no_package() -> None:
    assert pack([]) is None
    assert pack(iter(())) is None
    assert pack(range(0)) is None


def test_pack_takes_a_part_of_an_iterator() -> None:
    values = iter(range(5))
    parts = [pack(values, 2), pack(values, 2), pack(values, 2), pack(values, 2)]
    assert [read(part) for part in parts if part] == [[0, 1], [2, 3], [4]]
    assert parts[-1] is None


def test_serialized_items_are_added_unchanged() -> None:
    packer = Packer()
    for value in (1, "two"):
        packer.append_serialized(pickle.dumps(value))
    assert read(Packed(2, packer.finish())) == [1, "two"]


def test_a_value_that_does_not_pickle_is_named() -> None:
    with pytest.raises(SerializationError, match=r"\['lock'\] in the data of task 1 \(_thread.lock\)"):
        pack([1, {"lock": threading.Lock()}])


def test_data_over_the_limit_of_a_package_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packer, "BLOB_BYTES", 10_000)
    with pytest.raises(TooLarge, match="buffersize="):
        pack(bytes(1000) for _ in itertools.count())


@pytest.mark.parametrize("seals", [None, Seals(bytes(32), "p")])
def test_data_of_one_task_over_the_limit_of_a_package_is_refused(
    monkeypatch: pytest.MonkeyPatch, seals: Seals | None
) -> None:
    """The advice is no buffersize: one task's data stays as large in several packages."""
    monkeypatch.setattr(packer, "BLOB_BYTES", 1000)
    with pytest.raises(TooLarge, match=r"the data of task 1 alone take 1,\d+ bytes.*: send a reference \(") as caught:
        pack([1, bytes(1000)], seals=seals)
    assert "buffersize=" not in str(caught.value)


def test_data_over_the_limit_with_its_table_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packer, "BLOB_BYTES", 1000)
    with pytest.raises(TooLarge, match=r"first 100 tasks take 1,\d+ bytes"):
        pack([1] * 100)


def test_an_endless_iterable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packer, "PACKAGE_TASKS", 1000)
    with pytest.raises(TooLarge, match=r"passed 1,000 items.*buffersize="):
        pack(itertools.count())


def test_too_many_values_are_refused_before_any_is_serialized(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "PACKAGE_TASKS", 3)
    for values in ([1, 2, 3, 4], range(4)):
        with pytest.raises(TooLarge, match="buffersize="):
            pack(values)


def test_a_long_collection_of_an_iterable_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "NOTICE_S", 0.0)
    said: list[str] = []
    heard = threading.Event()

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())
            heard.set()

    logger, listener = logging.getLogger("cloudpar"), Listener()
    logger.addHandler(listener)

    def slow() -> Iterator[int]:
        yield 1
        assert heard.wait(60)

    try:
        pack(slow())
    finally:
        logger.removeHandler(listener)
    assert "still collecting the iterable" in said[0]
    assert "buffersize=" in said[0]


def test_a_failed_collection_leaves_no_file_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packer, "IN_MEMORY_BYTES", 10)

    def broken() -> Iterator[bytes]:
        yield bytes(100)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        pack(broken())  # a file left open is a warning, which is an error here


def test_large_data_for_a_pools_own_master_is_a_draft_in_its_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(packer, "INLINE_DATA_BYTES", 0)
    monkeypatch.setattr(packer, "DRAFT_BYTES", 1_000)
    values = [bytes(300), "text", *range(50), bytes(5_000)] * 3
    packed = pack(values, folder=PayloadFolder(str(tmp_path)))
    assert packed is not None
    assert isinstance(packed.data, Blob)
    assert isinstance(packed.data.file, Draft)
    assert read(packed) == values
    packed.close()
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_not_reported_as_an_unpicklable_value(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(packer, "DRAFT_BYTES", 10)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Draft, "write", full)
    with pytest.raises(OSError, match=rf"written to {tmp_path}: free space there, or set TMPDIR") as caught:
        pack([bytes(100), bytes(100)], folder=PayloadFolder(str(tmp_path)))
    assert caught.value.errno == errno.ENOSPC
    assert not list(tmp_path.iterdir())


def test_a_blob_has_its_bytes_as_body() -> None:
    assert b"".join(Blob(io.BytesIO(b"abc"), 3).body()) == b"abc"
