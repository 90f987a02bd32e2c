"""Writes that are copied back: each body here ends as it would have in a plain loop."""

from __future__ import annotations

import functools
from collections import Counter, OrderedDict, defaultdict
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from sdk.effects.loop import parallel_for

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Box:
    items: list[Any] = field(default_factory=list)
    total: int = 0

    def fill(self, i: int) -> None:
        self.items[i] = i * 10

    def __call__(self, i: int) -> None:
        self.items[i] = -i


@dataclass(slots=True)
class Slotted:
    items: list[Any]
    total: int = 0


@dataclass(slots=True, frozen=True)
class Frozen:
    items: list[Any]


class Bare:
    __slots__ = ("__hidden", "late")

    late: int

    def __init__(self) -> None:
        self.__hidden = 0

    def hide(self, value: int) -> None:
        self.__hidden = value

    def hidden(self) -> int:
        return self.__hidden


class Rows(list[Any]):
    """A list whose own methods must not be called when its state is copied back."""

    def __init__(self, *items: Any) -> None:
        super().__init__(items)
        self.label: object = "none"

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, ("seen", value))


def test_writes_by_negative_indexes_are_copied_back_and_an_empty_range_writes_nothing() -> None:
    result = [0] * 5

    def body(i: int) -> None:
        result[i] = i

    parallel_for(3, 3, body)
    assert result == [0] * 5
    parallel_for(-5, 0, body)
    assert result == [-5, -4, -3, -2, -1]


def test_nested_lists_keep_their_identity() -> None:
    grid = [[0] * 4 for _ in range(4)]
    rows = list(grid)

    def body(i: int) -> None:
        grid[i // 4][i % 4] = i

    parallel_for(0, 16, body)
    assert grid == [[4 * r + c for c in range(4)] for r in range(4)]
    assert all(row is old for row, old in zip(grid, rows, strict=True))


def test_many_writes_to_a_long_list_are_copied_back() -> None:
    result: list[Any] = list(range(5000))

    def body(i: int) -> None:
        for position in range(i, 5000, 7):
            result[position] = -position

    parallel_for(0, 7, body)
    assert result == [-position for position in range(5000)]


def test_dict_values_are_copied_back_and_new_keys_are_in_sequential_order() -> None:
    found: dict[Any, Any] = {"old": 1}

    def body(i: int) -> None:
        found[i] = i
        found[(i, "b")] = [i]
        if i == 3:
            found["old"] = 2

    parallel_for(0, 6, body)
    assert list(found.items()) == [("old", 2), *[pair for i in range(6) for pair in ((i, i), ((i, "b"), [i]))]]


@pytest.mark.parametrize("kind", [OrderedDict, lambda: defaultdict(list), Counter])
def test_writes_to_each_kind_of_dict_are_copied_back(kind: Callable[[], dict[Any, Any]]) -> None:
    found = kind()
    found["first"] = 0

    def body(i: int) -> None:
        found[i] = i

    parallel_for(0, 4, body)
    assert list(found.items()) == [("first", 0), (0, 0), (1, 1), (2, 2), (3, 3)]


def test_defaultdict_makes_its_defaults() -> None:
    found: defaultdict[int, list[int]] = defaultdict(list)

    def body(i: int) -> None:
        found[i].append(i)

    parallel_for(0, 3, body)
    assert found == {0: [0], 1: [1], 2: [2]}


def test_keys_that_compare_by_identity_stay_the_callers_objects() -> None:
    keys = [object() for _ in range(3)]
    found: dict[object, int] = {keys[0]: -1}

    def body(i: int) -> None:
        found[keys[i]] = i

    parallel_for(0, 3, body)
    assert found == {keys[0]: 0, keys[1]: 1, keys[2]: 2}


def test_old_and_new_attributes_are_copied_back() -> None:
    boxes = [Box() for _ in range(3)]
    space = SimpleNamespace(count=0)

    def body(i: int) -> None:
        boxes[i].total = i
        boxes[i].extra = i * 2  # type: ignore[attr-defined]
        if i == 0:
            space.count = 7

    parallel_for(0, 3, body)
    assert [(box.total, vars(box)["extra"]) for box in boxes] == [(0, 0), (1, 2), (2, 4)]
    assert space.count == 7


def test_writes_to_slots_are_copied_back() -> None:
    slotted, frozen, bare = Slotted([0, 0]), Frozen([0, 0]), Bare()

    def body(i: int) -> None:
        slotted.items[i] = i + 1
        frozen.items[i] = i + 2
        if i == 0:
            slotted.total = 5
        else:
            bare.late = 6
            bare.hide(7)

    parallel_for(0, 2, body)
    assert (slotted, frozen, bare.late, bare.hidden()) == (Slotted([1, 2], 5), Frozen([2, 3]), 6, 7)


def test_a_subclass_of_list_is_copied_back_without_its_methods() -> None:
    rows = Rows(1, 2)

    def body(i: int) -> None:
        list.__setitem__(rows, i, 10 * i)
        if i == 1:
            rows.label = "one"

    parallel_for(0, 2, body)
    assert (list(rows), rows.label) == ([0, 10], "one")


def test_bound_methods_callable_objects_and_builtins_work_as_bodies() -> None:
    box = Box([0, 0, 0])
    parallel_for(0, 3, box.fill)
    assert box.items == [0, 10, 20]
    parallel_for(0, 3, box)
    assert box.items == [0, -1, -2]
    found: dict[int, None] = {}
    parallel_for(0, 3, found.setdefault)
    assert found == {0: None, 1: None, 2: None}


def test_arguments_of_partials_and_defaults_are_copied_back() -> None:
    left, right, third, fourth = [0, 0], [0, 0], [0, 0], [0, 0]

    def write(to: list[int], i: int, *, also: list[int] = third, last: list[int]) -> None:
        to[i] = also[i] = last[i] = i + 1

    def body(i: int, into: list[int] = right) -> None:
        into[i] = i + 1

    parallel_for(0, 2, functools.partial(write, left, last=fourth))
    parallel_for(0, 2, body)
    assert left == right == third == fourth == [1, 2]


def test_attributes_of_a_partial_are_copied_back() -> None:
    def write(to: Any, i: int) -> None:
        to[0].notes[i] = i

    holder: list[Any] = []
    body = functools.partial(write, holder)
    body.notes = [None, None]  # type: ignore[attr-defined]
    holder.append(body)
    parallel_for(0, 2, body)
    assert vars(body) == {"notes": [0, 1]}


def test_function_attributes_are_copied_back() -> None:
    def helper(*, table: tuple[int, ...] = (1, 2)) -> tuple[int, ...]:
        return table

    helper.calls = [0, 0]  # type: ignore[attr-defined]

    def body(i: int) -> None:
        helper.calls[i] = helper()[i]  # type: ignore[attr-defined]
        if i:
            helper.last = i  # type: ignore[attr-defined]

    parallel_for(0, 2, body)
    assert vars(helper) == {"calls": [1, 2], "last": 1}


def test_variables_of_lambdas_and_nested_closures_are_copied_back() -> None:
    result = [0] * 4

    def outer() -> Callable[[int, int], None]:
        def inner(i: int, value: int) -> None:
            result[i] = value

        return inner

    put = outer()
    parallel_for(0, 4, lambda i: put(i, i + 1))
    assert result == [1, 2, 3, 4]


def test_a_recursive_function_may_be_captured() -> None:
    result = [0] * 6

    def fibonacci(i: int) -> int:
        return i if i < 2 else fibonacci(i - 1) + fibonacci(i - 2)

    def body(i: int) -> None:
        result[i] = fibonacci(i)

    parallel_for(0, 6, body)
    assert result == [0, 1, 1, 2, 3, 5]


def test_cycles_tuples_and_two_names_of_one_list_keep_their_identity() -> None:
    ring: list[Any] = [0, 0]
    ring.append(ring)
    same = ring
    pair = ([0, 0], "label")
    node: dict[str, Any] = {"value": 0}
    node["self"] = node

    def body(i: int) -> None:
        ring[2][2][i] = same[i] + 1
        pair[0][i] = i
        if i:
            node["self"]["value"] = 9

    parallel_for(0, 2, body)
    assert ring[:2] == [1, 1]
    assert ring[2] is ring
    assert pair == ([0, 1], "label")
    assert node["value"] == 9


def test_new_values_share_what_they_shared() -> None:
    shared: list[int] = [1]
    result: list[Any] = [None] * 4
    boxes = {"box": Box()}

    def body(i: int) -> None:
        new = [i, shared, boxes["box"]]
        result[i] = new
        result[i + 2] = {"same": new}

    parallel_for(0, 2, body)
    for i in range(2):
        assert result[i + 2]["same"] is result[i]
        assert result[i][1] is shared
        assert result[i][2] is boxes["box"]


def test_captured_functions_are_copied_back_as_themselves() -> None:
    result: list[Any] = [None, None]

    def helper() -> int:
        return 5

    def body(i: int) -> None:
        result[i] = helper if i else (lambda: i + 10)

    parallel_for(0, 2, body)
    assert result[0]() == 10
    assert result[1] is helper


def test_the_next_task_of_an_executor_sees_the_state_at_the_capture() -> None:
    grid = [[0], [0], [0]]
    state = {"a": 1}
    box = Box([5])
    result: list[Any] = [None] * 6

    def body(i: int) -> None:
        result[i] = (grid[0][0], dict(state), list(box.items), hasattr(box, "mark"))
        if i == 0:
            grid[0][0] = 1
        if i == 1:
            state["b"] = 2
        if i == 2:
            box.items[0] = 6
        if i == 3:
            box.mark = 1  # type: ignore[attr-defined]

    parallel_for(0, 6, body, executors=1)
    assert result == [(0, {"a": 1}, [5], False)] * 6
    assert (grid[0], state, box.items, vars(box)["mark"]) == ([1], {"a": 1, "b": 2}, [6], 1)


def test_sets_may_be_read_and_their_members_changed() -> None:
    members = {1, 2, 3}
    box = Bare()
    group = frozenset({box})
    result = [False] * 5

    def body(i: int) -> None:
        result[i] = i in members
        if i == 0:
            next(iter(group)).late = 4

    parallel_for(0, 5, body)
    assert result == [False, True, True, True, False]
    assert box.late == 4
