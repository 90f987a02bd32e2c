from __future__ import annotations

import functools
import operator
import sys
import types
from collections import deque
from typing import TYPE_CHECKING, Any

import cloudpickle
import numpy as np
import pytest

from cloudpar.effects import shipping
from cloudpar.effects.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Callable


def named(body: Callable[[int], object], *kinds: str) -> list[str]:
    return [str(facet.trail) for facet in Graph(body).facets if facet.kind in kinds]


def test_an_object_has_its_shortest_name() -> None:
    grid = [[1], [2]]
    row = grid[0]
    assert named(lambda i: (grid, row), "list") == ["grid", "row", "grid[1]"]


def test_names_of_attributes_keys_defaults_and_arguments() -> None:
    class Thing:
        def __init__(self) -> None:
            self.cells = {"a": [1]}

        def run(self, cells: list[int], i: int) -> None:
            cells[i] = i

    inner: list[Any] = [[]]

    def body(first: list[int], i: int, second: Any = inner, *, third: Any = ({},)) -> None:
        first[i] = i

    found = named(functools.partial(body, [0]), "list", "dict")
    assert found == ["first", "self.keywords", "second", "body.__kwdefaults__", "second[0]", "third[0]"]
    found = named(functools.partial(Thing().run, [0]), "list", "dict")
    assert found == ["cells", "self.keywords", "self.cells", "self.cells['a']"]
    assert named(inner.append, "list") == ["the list of the body 'append'", "the list of the body 'append'[0]"]


def test_object_array_elements_by_coordinates() -> None:
    array = np.empty((2, 2), object)
    array[1, 0] = []
    assert named(lambda i: array, "list") == ["array[1, 0]"]


def test_values_that_cannot_change_are_no_facets() -> None:
    values = [1, "a", None, 1.5, (1, (2, 3)), np.float64(1), np.dtype("f8"), range(3), frozenset({1})]
    kinds = [facet.kind for facet in Graph(lambda i: values).facets]
    assert kinds == ["function", "attributes", "list"]


def test_large_immutable_data_is_one_facet() -> None:
    numbers, pairs = list(range(100_000)), {k: (k, str(k)) for k in range(1000)}
    facets = Graph(lambda i: (numbers, pairs)).facets
    assert [facet.kind for facet in facets] == ["function", "attributes", "list", "dict"]


def test_installed_functions_classes_and_modules_are_not_walked() -> None:
    assert Graph(operator.index).facets == []
    kinds = [facet.kind for facet in Graph(lambda i: (np.linalg.norm, deque, sys, functools.cached_property)).facets]
    assert kinds == ["function", "attributes"]


def test_descriptors_are_walked_for_what_their_functions_use() -> None:
    left, right, third = [0], [0], [0]

    class Thing:
        @property
        def value(self) -> list[int]:
            return left

        @classmethod
        def make(cls) -> list[int]:
            return right

        @staticmethod
        def other() -> list[int]:
            return third

    assert sorted(named(lambda i: Thing, "list")) == ["left", "right", "third"]


def test_empty_cells_and_slices_are_walked() -> None:
    def body(i: int) -> None:
        later(i)

    cut = slice(0, 3)
    assert named(lambda i: cut, "opaque") == []
    assert named(body, "opaque") == []

    def later(i: int) -> None: ...


@pytest.mark.parametrize("registered", [False, True])
def test_functions_and_modules_travel_by_value_as_cloudpickle_decides(registered: bool) -> None:
    module = types.ModuleType("effects_made_here")
    exec("cells = []\ndef put(i):\n    cells[i] = i\n", vars(module))
    sys.modules[module.__name__] = module
    try:
        if registered:
            cloudpickle.register_pickle_by_value(module)
        assert shipping.is_by_value(module) is shipping.is_by_value(module.put) is registered
        assert named(module.put, "list") == (["cells"] if registered else [])
        assert named(lambda i: module, "list") == (["module.cells"] if registered else [])
    finally:
        if registered:
            cloudpickle.unregister_pickle_by_value(module)
        del sys.modules[module.__name__]
