from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudpar.effects.remote import identity


@given(length=st.integers(0, 700), positions=st.sets(st.integers(0, 699)))
def test_loop_and_memory_comparison_find_the_same_positions(length: int, positions: set[int]) -> None:
    before: list[Any] = [0.5] * length
    now = list(before)
    changed = sorted(position for position in positions if position < length)
    for position in changed:
        # An equal object still counts as another object.
        now[position] = float("0.5")
    assert identity.comparison()(now, before) == identity.by_loop(now, before) == changed


def test_this_interpreter_compares_memory() -> None:
    assert identity.comparison() is not identity.by_loop


@pytest.mark.parametrize("name", ["unknown", "cpython"])
def test_another_interpreter_uses_the_loop(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys.implementation, "name", name)
        if name == "cpython":
            patch.setitem(sys.modules, "ctypes", None)
        comparison = identity.comparison()
    assert comparison is identity.by_loop


def test_a_subclass_of_list_with_its_own_iteration_is_compared_by_its_items() -> None:
    class Reversed(list[int]):
        def __iter__(self) -> Any:
            return reversed(self)

    before = list(range(300))
    now = Reversed(before)
    now[7] = -1
    assert identity.comparison()(now, before) == identity.by_loop(now, before) == [7]
