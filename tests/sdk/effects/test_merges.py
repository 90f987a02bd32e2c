from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from cloudpar.effects import SideEffectError, capture
from sdk.effects.loop import gathered


class Key:
    """A key whose hash raises after some calls, as a user's class may."""

    refuses = False

    def __init__(self, name: str) -> None:
        self.name = name

    def __hash__(self) -> int:
        if Key.refuses:
            raise KeyboardInterrupt
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and other.name == self.name


def test_nothing_changes_before_the_commit() -> None:
    result = [0, 0]

    def body(i: int) -> None:
        result[i] = i + 1

    merge = gathered(body, 1, 0)
    assert result == [0, 0]
    merge.commit()
    assert result == [1, 2]
    with pytest.raises(ValueError, match="committed"):
        merge.commit()
    with pytest.raises(ValueError, match="committed"):
        merge.add(0, None)


def test_repeated_delivery_is_harmless() -> None:
    result, array = [0, 0], np.zeros(2)

    def body(i: int) -> None:
        result[i] = array[i] = i + 1

    gathered(body, 1, 0, 1, 1).commit()
    assert (result, array.tolist()) == ([1, 2], [1.0, 2.0])


def test_after_a_conflict_the_merge_is_closed() -> None:
    result = [0, 0]

    def body(i: int) -> None:
        result[0] = i + 1

    captured = capture(body)
    merge = captured.merge()
    merge.add(4, captured.code(4))
    with pytest.raises(SideEffectError, match=r"tasks 2 and 4: `result\[0\]` was written by two tasks; give") as caught:
        merge.add(2, captured.code(2))
    with pytest.raises(ValueError, match="has failed"):
        merge.commit()
    assert (caught.value.variable, result) == ("result[0]", [0, 0])


def test_a_list_that_the_caller_has_resized_meanwhile_is_refused() -> None:
    first, second = [0], [0]

    def body(i: int) -> None:
        first[i] = second[i] = 1

    merge = gathered(body, 0)
    second.append(9)
    with pytest.raises(SideEffectError, match="`second` was changed by the caller"):
        merge.commit()
    assert (first, second) == ([0], [0, 9])


@pytest.mark.parametrize("arrays_first", [False, True])
def test_an_interrupted_commit_is_undone(arrays_first: bool) -> None:
    class Slim:
        __slots__ = ("__dict__", "x", "y")

    result, array, objects, old, slim = [0], np.zeros(2), np.array([None]), {"a": 1}, Slim()
    first: dict[Any, Any] = {}
    zone: dict[Any, Any] = {}
    slim.x = 1  # type: ignore[attr-defined]

    def body(i: int) -> None:
        result[i] = array[i] = 1
        objects[0] = [1, 2]
        old["a"], old["b"] = 2, 3
        slim.x, slim.y, slim.z = 2, 3, 4  # type: ignore[attr-defined]
        # Targets are written in the order of their names, and the one that raises must come last.
        (first if arrays_first else zone)[Key("new")] = 1

    merge = gathered(body, 0)
    if arrays_first:
        merge._targets = dict(reversed(merge._targets.items()))
    Key.refuses = True
    try:
        with pytest.raises(KeyboardInterrupt):
            merge.commit()
    finally:
        Key.refuses = False
    assert (result, old, first, zone) == ([0], {"a": 1}, {}, {})
    assert not array.any()
    assert objects[0] is None
    assert slim.x == 1  # type: ignore[attr-defined]
    assert not hasattr(slim, "y")
    assert vars(slim) == {}


def test_a_side_effect_error_survives_pickling() -> None:
    result = [0]

    def body(i: int) -> None:
        result.append(i)

    with pytest.raises(SideEffectError) as caught:
        gathered(body, 7)
    copied = pickle.loads(pickle.dumps(caught.value))
    assert (str(copied), copied.variable, copied.index) == (str(caught.value), "result", 7)
