"""Footprints. The footprint of a function or class is the set of all objects from which its pickle is made.

While the footprint is unchanged, pickling again would give the same bytes.
"""

import enum
import functools
import sys
from collections.abc import Callable
from dataclasses import Field
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GenericAlias,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    ModuleType,
    NoneType,
    UnionType,
)
from typing import Any

import cloudpickle

from cloudpar_protocol.function_globals import submodules

from .local_modules import LOCAL_MODULES
from .pickling import SCALARS, Part

PARTS = 2_000
"""The size of the largest footprint, in objects. Comparing more objects would take longer than serializing the function
again."""

_MISSING = object()


_NEVER_CHANGE = SCALARS | {
    *(GetSetDescriptorType, MemberDescriptorType, CodeType, type(Ellipsis), object),
    type(vars(Part)["key"]),  # the descriptor of a named tuple's field
}
_TYPE_PARTS = (
    "__origin__",
    "__args__",
    "__metadata__",
    "__supertype__",
    "__bound__",
    "__constraints__",
    "__default__",
)
"""The attributes by which a type such as `list[Point]`, or a type variable, refers to the classes in its pickle."""


class _Unknown(Exception):
    """A pickle depends on an object that may change unnoticed, or on too many objects."""


class Footprint:
    """The objects from which the pickle of a function or class is made.

    Raises:
        _Unknown: The pickle depends on an object that may change unnoticed, or on more than PARTS objects.
    """

    def __init__(self, thing: object) -> None:
        self._strays = LOCAL_MODULES.strays()
        self._by_value = _registered_by_value(self._strays)
        self._held: list[object] = []
        """All objects of the footprint, kept alive so that no new object gets one of their ids."""
        self._checks: list[tuple[Callable[[Any], list[object]], Any, list[int]]] = []
        """For each object: a function that lists its parts, the object, and the ids of its parts when it was added."""
        self._seen = set[int]()
        self._functions: list[tuple[FunctionType, list[ModuleType]]] = []
        """The functions that are pickled by value, each with the submodules that are pickled with it."""
        self._imported = _imported()
        self._named = set[str]()
        """The modules in which executors find objects of the footprint by name."""
        self._add(thing)

    def holds(self) -> bool:
        """Whether pickling now would certainly give the same bytes."""
        strays = LOCAL_MODULES.strays()
        if strays != self._strays or _registered_by_value(strays) != self._by_value:
            return False
        try:
            if any(map(LOCAL_MODULES.is_deleted, self._named)) or not self._have_same_submodules():
                return False
            return all(list(map(id, look(thing))) == ids for look, thing, ids in self._checks)
        except Exception:  # noqa: BLE001 - a variable may be deleted, and a module's attributes may run code
            return False

    def _have_same_submodules(self) -> bool:
        now = _imported()
        if now == self._imported:
            return True
        self._imported = now
        return all(submodules(function) == modules for function, modules in self._functions)

    def _add(self, thing: Any) -> None:
        if id(thing) in self._seen:
            return
        self._seen.add(id(thing))
        self._held.append(thing)
        kind = type(thing)
        if len(self._held) > PARTS:
            raise _Unknown
        if kind in _NEVER_CHANGE:
            return
        # Classes are handled first: the metaclass of a `typing.Protocol` class belongs to `typing`, but the class may
        # change.
        if kind is FunctionType or isinstance(thing, type):
            self._add_code(thing)
        elif kind is ModuleType:
            self._watch(_is_imported, thing)
            if _is_imported(thing) != [True] or self._travels_by_value(thing.__name__):
                raise _Unknown
            self._named.add(thing.__name__)
        elif kind is BuiltinFunctionType:
            if thing.__self__ is not None and not isinstance(thing.__self__, ModuleType):
                self._add(thing.__self__)
        else:
            self._add_content(thing)

    def _add_code(self, thing: Any) -> None:
        if thing is NoneType:
            return  # its module is `builtins`, in which no import finds it
        self._watch(_is_found, thing)
        if _is_found(thing) == [True] and not self._travels_by_value(thing.__module__):
            self._named.add(thing.__module__)
            return  # the pickle contains only the name
        if type(thing) is FunctionType:
            self._watch(_of_function, thing)
            self._functions.append((thing, submodules(thing)))
            self._add_globals(thing.__code__, thing.__globals__)
        elif type(thing) in {type, enum.EnumType}:
            self._watch(_of_class, thing)
        else:
            raise _Unknown

    def _travels_by_value(self, module: str) -> bool:
        return any(f"{module}.".startswith(f"{name}.") for name in (*self._strays, *self._by_value))

    def _add_globals(self, code: CodeType, namespace: dict[str, Any]) -> None:
        # `co_names` also contains names of attributes. If a global with such a name changes, the function is serialized
        # again without need, which does no harm.
        self._watch(functools.partial(_of_namespace, code.co_names), namespace)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._add_globals(constant, namespace)

    def _add_content(self, thing: Any) -> None:
        kind = type(thing)
        if kind in {tuple, frozenset, list, set, dict} and len(thing) <= PARTS:
            self._watch(_of_dict if kind is dict else list, thing)
        elif kind is MappingProxyType:
            self._watch(_of_dict, thing)
        elif kind is Field:
            self._watch(_of_field, thing)
        elif kind in {GenericAlias, UnionType} or kind.__module__ in {"dataclasses", "typing"}:
            self._watch(_of_type, thing)
        elif kind in {classmethod, staticmethod}:
            self._add(thing.__func__)
        elif kind is functools.cached_property:
            self._add(thing.func)
        elif kind in {property, enum.property}:
            for part in thing.fget, thing.fset, thing.fdel:
                self._add(part)
        elif isinstance(kind, enum.EnumType):
            self._add(kind)
            self._watch(_of_dict, thing.__dict__)
        else:
            raise _Unknown

    def _watch(self, look: Callable[[Any], list[object]], thing: Any) -> None:
        try:
            seen = look(thing)
        except Exception:  # noqa: BLE001 - a variable may be unbound, and a module's attributes may run code
            raise _Unknown from None
        self._held += seen
        self._checks.append((look, thing, list(map(id, seen))))
        for part in seen:
            self._add(part)


def footprint(thing: object) -> Footprint | None:
    """Return the footprint of a function or class; None if it may change unnoticed, or is too large."""
    try:
        return Footprint(thing)
    except _Unknown:
        return None


def _imported() -> tuple[int, str]:
    """Return a value that changes when a module is imported for the first time."""
    return len(sys.modules), next(reversed(sys.modules))


def _is_found(thing: Any) -> list[object]:
    """Return, in a list for comparison, whether an import finds a function or class under its name."""
    found: object = None if thing.__module__ == "__main__" else sys.modules.get(thing.__module__ or "")
    for name in thing.__qualname__.split("."):
        found = getattr(found, name, None)
    return [found is thing]


def _of_function(function: FunctionType) -> list[object]:
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    settings = [
        function.__code__,
        function.__name__,
        function.__qualname__,
        function.__module__,
        function.__doc__,
        function.__defaults__,
        function.__kwdefaults__,
        function.__annotations__,
    ]
    return [*settings, *_of_dict(function.__dict__), *cells]


def _is_imported(module: ModuleType) -> list[object]:
    """Return, in a list for comparison, whether an import finds a module under its name."""
    return [sys.modules.get(module.__name__) is module]


def _registered_by_value(strays: dict[str, ModuleType]) -> set[str]:
    """Return the names of the modules that cloudpickle pickles by value because of a registration, without `strays`."""
    registered: set[str] = cloudpickle.list_registry_pickle_by_value()
    return registered.difference(strays)


def _of_type(thing: object) -> list[object]:
    return [getattr(thing, name, None) for name in _TYPE_PARTS]


def _of_field(field: "Field[Any]") -> list[object]:
    return [field.type, field.default, field.default_factory, field.metadata]


def _of_class(kind: type) -> list[object]:
    return [*kind.__bases__, *vars(kind), *vars(kind).values()]


def _of_dict(mapping: dict[Any, Any]) -> list[object]:
    return [*mapping, *mapping.values()]


def _of_namespace(names: tuple[str, ...], namespace: dict[str, Any]) -> list[object]:
    return [namespace.get(name, _MISSING) for name in names]
