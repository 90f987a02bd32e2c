"""Finds every object that a body can write to. Each object gets a number, and its name in the body's source."""

from __future__ import annotations

import functools
import itertools
import types
from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from cloudpar_protocol.decorated import is_generic

from . import shipping, steps
from .remote.bindings import MACHINERY
from .remote.containers import attributes, slots
from .trails import Coordinates, Trail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .steps import Step

    Visit = Callable[[Any, Trail], Iterator[Step]]

_LEGACY_KINDS = "biufcmMSUVO"


@dataclass(frozen=True, slots=True)
class Facet:
    """One captured object, and one way in which a task can change it.

    Attributes:
        kind: How the worker watches the object: as `list`, `dict`, `set`, `attributes`, `array`, `function`, `class` or
            `module`. An object whose changes show only in its pickle is `opaque`. An object whose class is pickled by
            value, and may leave attributes out of the pickle, is `hidden`.
        thing: The caller's object.
        trail: The object's name. An error about a function names the changed variable of the function instead.
    """

    kind: str
    thing: Any
    trail: Trail


class Graph:
    """The objects that a body captures. The search is breadth first, so that each object has its shortest name.

    Attributes:
        facets: The objects that the worker watches, by number.

    Example:
        >>> grid = [[0, 0], [0, 0]]
        >>> [(facet.kind, str(facet.trail)) for facet in Graph(lambda i: grid[i].sort()).facets]
        [('function', '<lambda>'), ('attributes', '<lambda>'), ('list', 'grid'), ('list', 'grid[0]'),
         ('list', 'grid[1]')]
    """

    def __init__(self, body: Callable[[int], object]) -> None:
        self.facets: list[Facet] = []
        # Every visited object is kept alive: otherwise a new object could get its id and would count as visited.
        self._seen: dict[int, Any] = {}
        self._atomic: dict[type, bool] = {}
        self._plain: dict[type, bool] = {}
        queue: deque[Step] = deque([(body, Trail(None, "name", "self"))])
        while queue:
            thing, trail = queue.popleft()
            if id(thing) not in self._seen:
                self._seen[id(thing)] = thing
                queue.extend(step for step in self._visit(thing, trail) if not self._is_atom(step[0]))
        self._seen.clear()
        self._hide_namespaces()

    def _is_atom(self, thing: Any) -> bool:
        kind = type(thing)
        found = self._atomic.get(kind)
        if found is None:
            found = self._atomic[kind] = shipping.is_atomic(kind)
        return found

    def _all_atoms(self, things: Iterable[Any]) -> bool:
        # For a list of a million numbers this is one pass in C. A search step for each number would take seconds.
        return all(self._atomic.get(kind) or shipping.is_atomic(kind) for kind in set(map(type, things)))

    def _add(self, kind: str, thing: Any, trail: Trail) -> None:
        self.facets.append(Facet(kind, thing, trail))

    def _visit(self, thing: Any, trail: Trail) -> Iterator[Step]:
        kind = type(thing)
        special = self._special(thing)
        if special is not None:
            yield from special(thing, trail)
        elif _is_array(thing):
            yield from self._array(thing, trail)
        else:
            if self._is_plain(kind) or shipping.has_python_code(kind):
                yield kind, Trail(None, "name", kind.__name__)
            if isinstance(thing, Enum):
                if not self._is_atom(thing.value):
                    self._add("opaque", thing, trail)
            elif self._is_plain(kind):
                yield from self._parts(thing, trail)
            else:
                own = shipping.has_python_code(kind) and shipping.is_by_value(kind)
                self._add("hidden" if own else "opaque", thing, trail)

    def _special(self, thing: Any) -> Visit | None:
        if isinstance(thing, type):
            return self._class
        exact: dict[type, Visit] = {
            types.FunctionType: self._function,
            types.ModuleType: self._module,
            types.MethodType: steps.of_method,
            types.BuiltinFunctionType: steps.of_builtin,
            types.MethodWrapperType: steps.of_builtin,
            functools.partial: steps.of_partial,
        }
        kind = type(thing)
        return steps.of_parts if kind in steps.PARTS else exact.get(kind)

    def _is_plain(self, kind: type) -> bool:
        found = self._plain.get(kind)
        if found is None:
            found = self._plain[kind] = shipping.is_plain(kind)
        return found

    def _parts(self, thing: Any, trail: Trail) -> Iterator[Step]:
        """Continue the search with an object's items and attributes, if the object's pickle contains exactly these."""
        if isinstance(thing, list):
            self._add("list", thing, trail)
            yield from self._items(list.__iter__(thing), list.__iter__(thing), trail)
        elif isinstance(thing, dict):
            self._add("dict", thing, trail)
            yield from self._pairs(thing, trail)
        elif isinstance(thing, set | frozenset):
            if isinstance(thing, set):
                self._add("set", thing, trail)
            if not self._all_atoms(thing):
                yield from ((item, trail.item(item)) for item in thing)
        elif isinstance(thing, tuple):
            yield from self._items(tuple.__iter__(thing), tuple.__iter__(thing), trail)
        kind = type(thing)
        descriptors = slots(kind)
        if hasattr(thing, "__dict__") or descriptors or kind is object:
            self._add("attributes", thing, trail)
            for name, value in attributes(thing, descriptors).items():
                yield value, trail.attribute(name)

    def _items(self, probe: Iterator[Any], items: Iterator[Any], trail: Trail) -> Iterator[Step]:
        if not self._all_atoms(probe):
            for position, item in enumerate(items):
                if not (type(item) is tuple and self._all_atoms(item)):
                    yield item, trail.item(position)

    def _pairs(self, thing: dict[Any, Any], trail: Trail) -> Iterator[Step]:
        if not self._all_atoms(dict.values(thing)):
            yield from ((value, trail.item(key)) for key, value in dict.items(thing))
        if not self._all_atoms(dict.__iter__(thing)):
            yield from ((key, trail.item(key)) for key in dict.__iter__(thing))
        factory = getattr(thing, "default_factory", None)
        if factory is not None:
            yield factory, trail.attribute("default_factory")

    def _array(self, array: Any, trail: Trail) -> Iterator[Step]:
        kind = array.dtype.kind
        if kind not in _LEGACY_KINDS or (array.dtype.hasobject and kind != "O"):
            self._add("opaque", array, trail)
            return
        self._add("array", array, trail)
        if kind == "O":
            places = map(Coordinates, itertools.product(*map(range, array.shape)))
            yield from ((item, trail.item(place)) for place, item in zip(places, array.flat, strict=True))

    def _function(self, function: types.FunctionType, _: Trail) -> Iterator[Step]:
        if not shipping.is_by_value(function):
            return
        name = Trail(None, "name", function.__name__)
        if is_generic(function):
            yield from steps.of_generic(function, name)
            return
        self._add("function", function, name)
        self._add("attributes", function, name)
        for free, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                yield cell.cell_contents, Trail(None, "name", free)
            except ValueError:
                continue
        for free in shipping.global_names(function):
            yield function.__globals__[free], Trail(None, "name", free)
        yield from steps.of_defaults(function, name)
        for key, value in vars(function).items():
            yield value, name.attribute(key)

    def _class(self, kind: type, trail: Trail) -> Iterator[Step]:
        if not shipping.is_by_value(kind):
            return
        name = Trail(None, "name", kind.__name__)
        self._add("class", kind, name)
        yield from ((base, trail) for base in (*kind.__bases__, type(kind)))
        if issubclass(kind, Enum):
            yield from ((member, name.attribute(key)) for key, member in kind.__members__.items())
            yield from ((value, name) for value in vars(kind).values() if isinstance(value, types.FunctionType))
            return
        for key, value in vars(kind).items():
            if key not in MACHINERY:
                yield value, name.attribute(key)

    def _module(self, module: types.ModuleType, trail: Trail) -> Iterator[Step]:
        if not shipping.is_by_value(module):
            return
        self._add("module", module, trail)
        for key, value in vars(module).items():
            if key not in MACHINERY:
                yield value, trail.attribute(key)

    def _hide_namespaces(self) -> None:
        """Make a dict opaque if it is also a captured object's `__dict__`, since unpickling makes two dicts of it."""
        owners = [facet.thing for facet in self.facets if facet.kind == "attributes"]
        namespaces = {id(vars(thing)) for thing in owners if hasattr(thing, "__dict__")}
        self.facets = [
            Facet("opaque", facet.thing, facet.trail)
            if facet.kind == "dict" and id(facet.thing) in namespaces
            else facet
            for facet in self.facets
        ]


def _is_array(thing: Any) -> bool:
    # The class is compared by its name, because a body without arrays must not import NumPy.
    kind = type(thing)
    return kind.__module__ == "numpy" and kind.__name__ == "ndarray"
