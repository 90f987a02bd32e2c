"""NumPy arrays in `parallel_for`: what is copied back, what shares memory, and what conflicts."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from cloudpar.effects import SideEffectError, capture
from sdk.effects.loop import alone, failure, gathered, parallel_for

if TYPE_CHECKING:
    from collections.abc import Callable

_RECORD = np.dtype([("flag", "i1"), ("value", "f8")], align=True)


@pytest.mark.parametrize(
    ("made", "value"),
    [
        (np.zeros(6), 1.5),
        (np.full(6, np.nan), 2.0),
        (np.zeros(6, "f4"), 1.5),
        (np.zeros(6, "f2"), 1.5),
        (np.zeros(6, "c16"), 1 + 2j),
        (np.zeros(6, ">i4"), 258),
        (np.zeros(6, "?"), True),
        (np.zeros(6, "i1"), 3),
        (np.zeros(6, "U3"), "abc"),
        (np.zeros(6, "S5"), b"abcde"),
        (np.zeros(6, "M8[s]"), np.datetime64("2020-01-01", "s")),
        (np.zeros(6, "m8[ms]"), np.timedelta64(5, "ms")),
        (np.zeros(6, _RECORD), (1, 2.5)),
        (np.zeros(6, [("a", "i4"), ("b", "i2", (3,))]), (7, [1, 2, 3])),
        (np.array([None] * 6), "text"),
    ],
)
def test_elements_of_each_dtype_are_copied_back(made: Any, value: object) -> None:
    array, expected = made.copy(), made.copy()

    def body(i: int) -> None:
        array[i] = value

    for i in range(1, 5):
        expected[i] = value
    parallel_for(1, 5, body)
    assert array.tobytes() == expected.tobytes() if array.dtype != object else list(array) == list(expected)


@pytest.mark.parametrize(
    "view",
    [
        lambda: np.zeros((4, 6)),
        lambda: np.zeros((4, 6), order="F"),
        lambda: np.zeros((6, 4)).T,
        lambda: np.zeros((8, 12))[::2, ::2],
        lambda: np.zeros((4, 6))[::-1, ::-1],
        lambda: np.zeros((4, 6), _RECORD)["value"],
        lambda: np.zeros((4, 6, 2)).transpose(1, 0, 2)[:4],
        lambda: np.array([[None] * 6] * 4)[:, ::-1],
    ],
)
def test_writes_to_views_of_each_layout_are_copied_back(view: Callable[[], Any]) -> None:
    array, expected = view(), view()

    def write(to: Any, i: int) -> None:
        to[i, 1] = i + 1
        to[i, 3] = i + 2

    for i in range(4):
        write(expected, i)

    parallel_for(0, 4, lambda i: write(array, i))
    assert (array == expected).all()


@pytest.mark.parametrize("dtype", [">i2", ">f8", ">c16", ">U2", ">M8[s]", np.dtype([("a", ">i4"), ("b", "<i2")])])
@pytest.mark.parametrize("step", [1, 2, -1])
def test_arrays_of_foreign_byte_order_are_copied_back(dtype: Any, step: int) -> None:
    array, expected = np.zeros(8, dtype)[::step], np.zeros(8, dtype)[::step]

    def body(i: int) -> None:
        array[i] = (i + 1, 3) if array.dtype.names else np.array(i + 1).astype(array.dtype)

    for i in range(4):
        expected[i] = (i + 1, 3) if expected.dtype.names else np.array(i + 1).astype(expected.dtype)
    parallel_for(0, 4, body)
    assert array.tobytes() == expected.tobytes()


def test_arrays_without_dimensions_or_elements_are_copied_back() -> None:
    number, thing, empty = np.array(1.5), np.array(None), np.zeros((0, 3))

    def body(i: int) -> None:
        if i == 0:
            number[()] = 2.5
        else:
            thing[...] = np.fromiter([[1, 2]], object).reshape(())
        empty[:] = 1

    parallel_for(0, 2, body)
    assert number == 2.5
    assert thing.item() == [1, 2]
    assert empty.size == 0


@pytest.mark.parametrize("dtype", ["f8", ">f8", "O"])
def test_arrays_without_dimensions_conflict_and_share_memory(dtype: str) -> None:
    number = np.zeros((), dtype)

    def body(i: int) -> None:
        number[()] = i + 1

    error = failure(body)
    assert (error.variable, number.item()) == ("number[()]", 0)
    parallel_for(3, 4, body)
    assert number.item() == 4
    line = np.zeros(3, ">i2")
    last = line[2:].reshape(())

    def through(i: int) -> None:
        last[()] = i
        line[0] = line[2] + 1

    parallel_for(7, 8, through)
    assert line.tolist() == [8, 0, 7]


def test_nan_that_was_not_written_is_no_write() -> None:
    array = np.full(3, np.nan)
    assert alone(lambda i: array.sum())(0) is None


def test_runs_and_scattered_elements_are_copied_back() -> None:
    array = np.zeros(100, "i8")

    def body(i: int) -> None:
        array[10 * i : 10 * i + 5] = i + 1
        array[10 * i + 7] = -i - 1

    parallel_for(0, 10, body)
    expected = np.zeros((10, 10), "i8")
    expected[:, :5] = np.arange(1, 11)[:, None]
    expected[:, 7] = -np.arange(1, 11)
    assert (array == expected.ravel()).all()


def test_object_arrays_hold_captured_and_new_objects() -> None:
    row = [0, 0]
    array = np.empty((2, 2), object)
    array[0, 0] = row

    def body(i: int) -> None:
        array[1, i] = [i, row]
        array[0, 0][i] = i + 5

    parallel_for(0, 2, body)
    assert row == [5, 6]
    assert [array[1, i] for i in range(2)] == [[0, row], [1, row]]
    assert array[1, 0][1] is array[0, 0] is row


def test_read_only_array_refuses_as_it_does_here() -> None:
    array = np.zeros(3)
    array.flags.writeable = False

    def body(i: int) -> None:
        array[i] = 1

    with pytest.raises(ValueError, match="read-only"):
        parallel_for(0, 3, body)


@pytest.mark.parametrize(
    "change",
    [
        lambda array: setattr(array, "shape", (4, 1)),
        lambda array: setattr(array.flags, "writeable", False),
        lambda array: setattr(array, "dtype", np.dtype("i8")),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_changed_layout_of_an_array_is_refused(change: Callable[[Any], None]) -> None:
    array = np.zeros(4)
    error = failure(lambda i: change(array))
    assert error.variable == "array"
    assert (array.shape, array.dtype) == ((4,), np.dtype("f8"))


def test_resizing_an_array_is_refused_at_the_worker() -> None:
    array = np.zeros(4)
    with pytest.raises(ValueError, match="resize"):
        parallel_for(0, 2, lambda i: array.resize((5,), refcheck=False))
    assert array.shape == (4,)


def test_views_and_their_base_share_memory_at_the_worker() -> None:
    base = np.zeros(10)
    left, backwards = base[:6], base[::-1]

    def body(i: int) -> None:
        left[i] = i + 1
        base[i] *= 2
        backwards[9 - i] += 0.5

    parallel_for(0, 6, body)
    assert list(base) == [2.5, 4.5, 6.5, 8.5, 10.5, 12.5, 0, 0, 0, 0]


def test_writes_through_a_view_and_its_base_conflict() -> None:
    base = np.zeros((3, 4))
    view = base[1:, 1:]

    def body(i: int) -> None:
        if i == 0:
            base[2, 3] = 1
        else:
            view[1, 2] = 2

    assert failure(body).variable in {"base[2, 3]", "view[1, 2]"}
    assert not base.any()


def test_views_of_another_dtype_share_memory_and_conflict() -> None:
    records = np.zeros(4, _RECORD)
    values, raw = records["value"], records.view("u1")

    def body(i: int) -> None:
        values[i] = i + 1
        records["flag"][i] = raw[i * 16 + 15]

    parallel_for(0, 4, body)
    assert list(values) == [1, 2, 3, 4]
    assert all(records["flag"] == raw[15::16].view("i1"))

    def clash(i: int) -> None:
        if i == 0:
            raw[8] = 1
        else:
            values[0] = 9

    assert failure(clash).variable.startswith(("raw[", "values[0]", "records[0]"))


def test_columns_without_common_bytes_travel_separately() -> None:
    matrix = np.zeros((500, 500))
    left, right = matrix[:, 0], matrix[:, 1]
    captured = capture(lambda i: (left[i], right[i]))
    assert captured.regions == ()


def test_many_overlapping_views_share_memory() -> None:
    matrix = np.zeros((40, 3))
    rows = [matrix[k] for k in range(40)]

    def body(i: int) -> None:
        rows[i][0] = i
        matrix[i, 2] = rows[i][0] + 1

    parallel_for(0, 40, body)
    assert (matrix == np.stack([np.arange(40), np.zeros(40), np.arange(1, 41)], axis=1)).all()


def test_an_array_with_overlapping_elements_is_copied_back_and_conflicts() -> None:
    line = np.zeros(5)
    windows = np.lib.stride_tricks.as_strided(line, (3, 3), (8, 8))
    seen = [0.0] * 3

    def body(i: int) -> None:
        windows[i, 0] = i + 1
        seen[i] = windows[i - 1, 1] if i else 0.0

    parallel_for(0, 3, body)
    assert seen == [0, 2, 3]
    assert list(line) == [1, 2, 3, 0, 0]

    def clash(i: int) -> None:
        windows[i, 1 - i] = 7 + i

    assert failure(clash).variable in {"windows[0, 1]", "windows[1, 0]"}


def test_writes_to_object_arrays_that_share_memory_are_refused() -> None:
    base = np.array([None] * 4)
    view = base[:2]

    def body(i: int) -> None:
        view[i] = base[3]
        view[i] = i

    assert failure(body).variable == "view"
    assert list(base) == [None] * 4


def test_new_view_of_a_captured_array_is_a_view_here() -> None:
    array = np.arange(12.0).reshape(3, 4)
    result: list[Any] = [None] * 3
    again: list[Any] = [None] * 3

    def body(i: int) -> None:
        array[i, 0] = -1
        result[i] = again[i] = array[i, ::-1]

    parallel_for(0, 3, body)
    array[1, 3] = 99
    assert list(result[1]) == [99, 6, 5, -1]
    assert again[1] is result[1]


def test_new_view_of_a_read_only_array_is_read_only() -> None:
    array = np.arange(4.0)
    array.flags.writeable = False
    result: list[Any] = [None] * 2

    def body(i: int) -> None:
        result[i] = array[i : i + 2]

    parallel_for(0, 2, body)
    assert np.shares_memory(result[1], array)
    assert not result[1].flags.writeable


def test_a_view_of_an_array_that_the_task_made_arrives_as_an_array() -> None:
    array = np.arange(4.0)
    result: list[Any] = [None] * 2

    def body(i: int) -> None:
        result[i] = (array * 2)[i:]

    parallel_for(0, 2, body)
    assert result[1].tolist() == [2, 4, 6]


def test_an_array_element_that_cannot_be_pickled_is_refused() -> None:
    array = np.array([None] * 3)

    def body(i: int) -> None:
        array[i] = threading.Lock()

    assert failure(body).variable == "array"


def test_arrays_count_as_sharing_memory_if_it_is_too_hard_to_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(*_: object, **__: object) -> bool:
        raise np.exceptions.TooHardError

    monkeypatch.setattr(np, "shares_memory", give_up)
    matrix = np.zeros((5, 5))
    left, right = matrix[:, 0], matrix[:, 1]
    assert len(capture(lambda i: (left[i], right[i])).regions) == 1


def test_a_new_view_of_memory_that_is_not_contiguous_is_refused() -> None:
    column = np.zeros((4, 4))[:, 1]
    result: list[Any] = [None] * 2

    def body(i: int) -> None:
        result[i] = column[1:3]

    error = failure(body)
    assert error.variable == "column"
    assert "write a copy" in str(error)


def test_new_arrays_are_copied_back() -> None:
    result: list[Any] = [None] * 3

    def body(i: int) -> None:
        result[i] = np.arange(6)[i::2]

    parallel_for(0, 3, body)
    assert [list(array) for array in result] == [[0, 2, 4], [1, 3, 5], [2, 4]]


@pytest.mark.parametrize(
    ("array", "change"),
    [
        (np.ma.masked_array([1, 2, 3], mask=[False, True, False]), lambda array: array.__setitem__(0, 7)),
        (np.zeros(3, [("a", "i4"), ("o", object)]), lambda array: array.__setitem__(0, (1, "x"))),
        (np.random.default_rng(1), lambda generator: generator.random()),
    ],
)
def test_changes_of_opaque_array_types_are_refused(array: Any, change: Callable[[Any], object]) -> None:
    assert failure(lambda i: change(array)).variable == "array"


def test_an_array_that_the_caller_has_changed_meanwhile_is_refused() -> None:
    array, items = np.zeros(3), [0, 0]

    def body(i: int) -> None:
        items[0] = 1
        array[i] = 1

    merge = gathered(body, 0)
    array.flags.writeable = False
    with pytest.raises(SideEffectError, match="`array` was changed by the caller"):
        merge.commit()
    assert items == [0, 0]
