"""Large buffers in pickles: every unpickler reads such a pickle, and `loads` uses the buffers where they are."""

import io
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudpar_protocol import large_buffers
from cloudpar_protocol.large_buffers import ALIGNMENT, LARGE_BYTES, Marker, is_marked, loads

LARGE = bytes(range(256)) * (LARGE_BYTES // 256 + 1)


class Array:
    """An object that offers its memory to picklers, as arrays of NumPy do."""

    def __init__(self, content: Any) -> None:
        self.content = content

    def __reduce_ex__(self, protocol: Any) -> Any:
        return Array, (pickle.PickleBuffer(self.content),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Array) and bytes(self.content) == bytes(other.content)

    __hash__ = None  # type: ignore[assignment]


def marked(*values: object) -> tuple[bytearray, list[int]]:
    """The pickles of values, one after the other, and where each one ends."""
    file, ends = io.BytesIO(), [0]
    marker = Marker(file)
    for value in values:
        pickle.Pickler(marker, 5).dump(value)
        marker.end(ends[-1])
        ends.append(file.tell())
    return bytearray(file.getvalue()), ends


def item(memory: bytearray, ends: list[int], position: int) -> memoryview:
    return memoryview(memory)[ends[position] : ends[position + 1]]


def addresses(memory: bytearray, array: Array) -> int:
    """Where in `memory` the content of an array is."""
    array.content[:4] = b"\xaa\xbb\xcc\xdd"
    return memory.index(b"\xaa\xbb\xcc\xdd")


def test_an_object_uses_the_memory_of_its_pickle() -> None:
    memory, ends = marked(("first", Array(bytearray(LARGE))))
    (_, array) = loads(item(memory, ends, 0))
    assert bytes(array.content) == LARGE
    assert addresses(memory, array) % ALIGNMENT == 0


def test_every_unpickler_reads_a_pickle_with_marked_buffers() -> None:
    value = [Array(bytearray(LARGE)), Array(LARGE), "text"]
    memory, ends = marked(value)
    assert is_marked(item(memory, ends, 0))
    assert pickle.loads(item(memory, ends, 0)) == value
    assert pickle._loads(bytes(memory)) == value  # type: ignore[attr-defined]  # the unpickler in Python


def test_memory_that_was_read_only_stays_read_only() -> None:
    memory, ends = marked([Array(LARGE), Array(bytearray(LARGE))])
    one, other = loads(item(memory, ends, 0))
    assert (one.content.readonly, other.content.readonly) == (True, False)


def test_one_object_that_a_pickle_refers_to_twice_stays_one() -> None:
    array = Array(bytearray(LARGE))
    memory, ends = marked([array, "between", array])
    one, _, other = loads(item(memory, ends, 0))
    assert one is other


@pytest.mark.parametrize("value", ["text", LARGE, bytearray(LARGE), Array(bytearray(LARGE_BYTES - 1)), Array(b"")])
def test_a_pickle_without_large_buffers_is_a_usual_pickle(value: object) -> None:
    memory, ends = marked(value)
    assert bytes(item(memory, ends, 0)[-1:]) == pickle.STOP
    assert loads(item(memory, ends, 0)) == value


def test_a_buffer_at_an_odd_address_is_copied() -> None:
    memory, ends = marked([Array(bytearray(LARGE)), Array(LARGE)])
    before = bytes(memory)
    one, other = loads(item(memory, ends, 0), at=1)
    one.content[0] = 77
    assert memory == before
    assert (bytes(one.content[1:]), bytes(other.content), other.content.readonly) == (LARGE[1:], LARGE, True)


def test_a_buffer_that_is_a_small_part_is_copied_on_request() -> None:
    memory, ends = marked([Array(bytearray(LARGE)), Array(bytearray(4 * LARGE))])
    before = bytes(memory)
    small, large = loads(item(memory, ends, 0), least=2 * LARGE_BYTES)
    small.content[0] = 77
    assert memory == before
    assert addresses(memory, large)


def test_a_pickle_after_one_that_failed_is_read_as_usual() -> None:
    class Refuses:
        def __reduce__(self) -> Any:
            raise ValueError

    file = io.BytesIO()
    marker = Marker(file)
    pickler = pickle.Pickler(marker, 5)
    with pytest.raises(ValueError):  # noqa: PT011 - the class is this test's
        pickler.dump([Array(bytearray(LARGE)), b"q" * 100_000, Refuses()])
    marker.forget()
    file.seek(0)
    file.truncate()
    pickler.clear_memo()
    pickler.dump([Array(bytearray(LARGE))])
    marker.end(0)
    assert loads(memoryview(bytearray(file.getvalue()))) == [Array(LARGE)]


def test_an_array_of_more_dimensions_is_marked_by_its_bytes() -> None:
    content = memoryview(bytearray(8 * LARGE_BYTES)).cast("d", (8, LARGE_BYTES // 8))
    memory, ends = marked(Array(content))
    assert is_marked(item(memory, ends, 0))
    assert len(loads(item(memory, ends, 0)).content) == 8 * LARGE_BYTES


values = st.recursive(
    st.one_of(
        st.integers(), st.text("ab"), st.binary(max_size=100),
        st.integers(1, 70_000).map(bytes), st.integers(1, 70_000).map(lambda n: Array(bytearray(n))),
        st.integers(0, 200).map(lambda n: Array(bytearray(LARGE + bytes(n)))),
        st.integers(0, 200).map(lambda n: Array(LARGE + bytes(n))),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text("ab", max_size=3), inner, max_size=3)),
    max_leaves=8,
)  # fmt: skip


@given(st.lists(values, min_size=1, max_size=3))
def test_any_objects_come_back_from_one_file(some: list[Any]) -> None:
    memory, ends = marked(*some)
    for position, value in enumerate(some):
        data = item(memory, ends, position)
        assert loads(data, ends[position]) == value
        assert pickle.loads(data) == value


@pytest.mark.parametrize("size", range(2, ALIGNMENT + 2))
def test_opcodes_without_an_effect_have_any_size(size: int) -> None:
    padding = large_buffers._no_op(size % ALIGNMENT)
    assert len(padding) % ALIGNMENT == size % ALIGNMENT
    assert pickle.loads(padding + pickle.dumps("value")) == "value"
