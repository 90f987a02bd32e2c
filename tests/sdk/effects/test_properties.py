"""A program with disjoint writes ends as in a plain loop; any other raises and changes nothing."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloudpar.effects import SideEffectError
from sdk.effects.loop import gathered, parallel_for

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Node:
    value: Any = 0
    items: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class SlimNode:
    value: Any = 0
    items: list[Any] = field(default_factory=list)


_LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(allow_nan=False), st.text(max_size=3), st.binary(max_size=3)
)
_SHAPES = st.sampled_from([(), (1,), (4,), (2, 3), (2, 1, 2)])
_DTYPES = st.sampled_from(["f8", "i4", "c16", "U2", "O", ">i2", "?", "M8[s]"])


def _array(shape: tuple[int, ...], dtype: str, layout: str) -> Any:
    array = np.zeros(tuple(2 * length for length in shape), dtype)
    array = array[tuple(slice(None, None, 2) for _ in shape)] if layout == "strided" else np.zeros(shape, dtype)
    return array.T if layout == "transposed" else array


_ARRAYS = st.builds(_array, _SHAPES, _DTYPES, st.sampled_from(["plain", "strided", "transposed"]))
_TREES = st.recursive(
    _LEAVES | _ARRAYS,
    lambda children: st.one_of(
        st.lists(children, max_size=4),
        st.lists(children, max_size=3).map(tuple),
        st.dictionaries(st.one_of(st.integers(0, 5), st.text(max_size=2)), children, max_size=4),
        st.builds(Node, children, st.lists(children, max_size=3)),
        st.builds(SlimNode, children, st.lists(children, max_size=3)),
    ),
    max_leaves=14,
)


def places(root: Any) -> list[tuple[Any, Any]]:
    """Every element that can be written, in an order that depends only on the structure."""
    found: list[tuple[Any, Any]] = []
    seen: dict[int, Any] = {}
    stack = [root]
    while stack:
        thing = stack.pop()
        if id(thing) in seen:
            continue
        seen[id(thing)] = thing
        if isinstance(thing, list | tuple):
            stack.extend(thing)
            found += [(thing, position) for position in range(len(thing)) if isinstance(thing, list)]
        elif isinstance(thing, dict):
            stack.extend(thing.values())
            found += [(thing, key) for key in [*thing, ("new", len(found))]]
        elif isinstance(thing, Node | SlimNode):
            stack.append(thing.items)
            stack.append(thing.value)
            found.append((thing, "value"))
        elif isinstance(thing, np.ndarray):
            found += [(thing, place) for place in np.ndindex(thing.shape)]
    return found


def write(place: tuple[Any, Any], value: int) -> None:
    thing, key = place
    if isinstance(thing, Node | SlimNode):
        thing.value = [value]
    elif isinstance(thing, np.ndarray):
        thing[key] = np.array(value).astype(thing.dtype)
    else:
        thing[key] = {"value": value}


def shape(root: Any) -> Any:
    """A structure with all identities written out, so that two structures can be compared."""
    numbers: dict[int, int] = {}
    kept: list[Any] = []

    def describe(thing: Any) -> Any:
        if isinstance(thing, np.ndarray):
            return (
                "array",
                str(thing.dtype),
                thing.shape,
                [describe(item) for item in thing.flat] if thing.dtype == object else thing.tobytes(),
            )
        if not isinstance(thing, list | tuple | dict | Node | SlimNode):
            return (type(thing).__name__, repr(thing))
        if id(thing) in numbers:
            return ("again", numbers[id(thing)])
        numbers[id(thing)] = len(numbers)
        kept.append(thing)
        if isinstance(thing, dict):
            return ("dict", [(repr(key), describe(value)) for key, value in thing.items()])
        if isinstance(thing, list | tuple):
            return (type(thing).__name__, [describe(item) for item in thing])
        return (type(thing).__name__, describe(thing.value), describe(thing.items))

    return describe(root)


@settings(max_examples=150, deadline=None)
@given(
    root=st.lists(_TREES, min_size=1, max_size=4),
    owners=st.lists(st.integers(-1, 5), min_size=60, max_size=60),
    twice=st.booleans(),
    executors=st.integers(1, 3),
    seed=st.integers(0, 9),
)
def test_disjoint_writes_end_as_in_a_plain_loop(
    *, root: list[Any], owners: list[int], twice: bool, executors: int, seed: int
) -> None:
    if twice:
        root.append(root[0])
        root.append(root)
    expected = copy.deepcopy(root)
    # A replaced parent hides writes below it, here as in a loop; both see the same places.
    targets = places(root)
    plain = places(expected)
    for index in range(6):
        for place, owner in zip(plain, owners, strict=False):
            if owner == index:
                write(place, index)

    def body(i: int) -> None:
        for place, owner in zip(targets, owners, strict=False):
            if owner == i:
                write(place, i)

    parallel_for(0, 6, body, executors=executors, seed=seed)
    assert shape(root) == shape(expected)


@settings(max_examples=60, deadline=None)
@given(root=st.lists(_TREES, min_size=1, max_size=3), choice=st.integers(0, 50), seed=st.integers(0, 9))
def test_a_place_that_two_tasks_write_is_a_conflict(*, root: list[Any], choice: int, seed: int) -> None:
    targets = places(root)
    place = targets[choice % len(targets)]
    before = shape(root)

    def body(i: int) -> None:
        write(place, i + 1)
        write(targets[0], i + 1)

    with pytest.raises(SideEffectError):
        parallel_for(0, 2, body, seed=seed)
    assert shape(root) == before


@settings(max_examples=60, deadline=None)
@given(
    length=st.integers(1, 40),
    views=st.lists(st.tuples(st.integers(0, 39), st.integers(0, 40), st.sampled_from([-2, -1, 1, 2, 3])), max_size=4),
    writes=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 39)), max_size=30),
    dtype=st.sampled_from(["f8", "i2", "U1"]),
)
def test_views_conflict_by_memory(
    length: int, views: list[tuple[int, int, int]], writes: list[tuple[int, int]], dtype: str
) -> None:
    base = np.zeros(length, dtype)
    arrays = [base, *[base[first:last][::step] for first, last, step in views]]
    steps = [(arrays[which % len(arrays)], place) for which, place in writes]
    steps = [(array, place % len(array)) for array, place in steps if len(array)]
    addresses = [array[place:].__array_interface__["data"][0] for array, place in steps]

    def body(i: int) -> None:
        array, place = steps[i]
        array[place] = 1

    indexes = range(len(steps))
    if len(set(addresses)) < len(addresses):
        with pytest.raises(SideEffectError, match="two tasks"):
            gathered(body, *reversed(indexes))
        assert not base.astype("?").any() if dtype != "U1" else "1" not in base
    else:
        gathered(body, *reversed(indexes)).commit()
        assert sum(bool(item) and item != "" for item in base.tolist()) == len(steps)


@settings(max_examples=60, deadline=None)
@given(
    changes=st.lists(
        st.sampled_from(["append", "pop", "add", "delete", "rebind", "write", "none"]), min_size=4, max_size=4
    ),
    seed=st.integers(0, 9),
)
def test_a_write_that_cannot_be_copied_back_is_never_lost(*, changes: list[str], seed: int) -> None:
    items, members, found = [0, 0, 0, 0], {1}, {"a": 1}
    total = 0

    def change(kind: str, i: int) -> None:
        nonlocal total
        actions: dict[str, Callable[[], object]] = {
            "append": lambda: items.append(1),
            "pop": items.pop,
            "add": lambda: members.add(9),
            "delete": lambda: found.pop("a"),
            "write": lambda: items.__setitem__(i, 7),
            "none": lambda: None,
        }
        if kind == "rebind":
            total += 1
        else:
            actions[kind]()

    def body(i: int) -> None:
        change(changes[i], i)

    if set(changes) <= {"write", "none"}:
        parallel_for(0, 4, body, seed=seed)
        assert items == [7 if kind == "write" else 0 for kind in changes]
    else:
        with pytest.raises(SideEffectError):
            parallel_for(0, 4, body, seed=seed)
        assert items == [0, 0, 0, 0]
    assert (members, found, total) == ({1}, {"a": 1}, 0)
