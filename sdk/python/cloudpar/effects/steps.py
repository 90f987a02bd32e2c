"""Continues the search of a body (see `Graph`) from callables, and names the objects that it finds there."""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any

from .trails import Trail

if TYPE_CHECKING:
    from collections.abc import Iterator

    Step = tuple[Any, Trail]


def of_defaults(function: types.FunctionType, name: Trail) -> Iterator[Step]:
    """Continue the search with a function's default values, and with the dict of its keyword-only defaults."""
    code, defaults, named = function.__code__, function.__defaults__ or (), function.__kwdefaults__
    first = code.co_argcount - len(defaults)
    for parameter, value in zip(code.co_varnames[first:], defaults, strict=False):
        yield value, Trail(None, "name", parameter)
    if named:
        for parameter, value in named.items():
            yield value, Trail(None, "name", parameter)
        yield named, name.attribute("__kwdefaults__")


def of_method(method: types.MethodType, _: Trail) -> Iterator[Step]:
    """Continue the search with the object and the function of a bound method."""
    yield method.__self__, Trail(None, "name", "self")
    yield method.__func__, Trail(None, "name", method.__func__.__name__)


def of_builtin(method: Any, trail: Trail) -> Iterator[Step]:
    """Continue the search with the object to which a C method is bound, such as the list of `items.append`."""
    bound = method.__self__
    if bound is not None and trail.parent is None and trail.key == "self":  # the body itself: no variable names it
        yield bound, Trail(None, "name", f"the {type(bound).__name__} of the body '{method.__name__}'")
    elif bound is not None:
        yield bound, trail.attribute("__self__")


def of_partial(partial: functools.partial[Any], trail: Trail) -> Iterator[Step]:
    """Continue the search with a partial's function, attributes and arguments (under the names of their parameters)."""
    code = getattr(partial.func, "__code__", None)
    bound = isinstance(partial.func, types.MethodType)
    names = code.co_varnames[bound : code.co_argcount] if code is not None else ()
    for position, value in enumerate(partial.args):
        named = position < len(names)
        yield value, Trail(None, "name", names[position]) if named else trail.attribute("args").item(position)
    for key, value in partial.keywords.items():
        yield value, Trail(None, "name", key)
    yield partial.keywords, trail.attribute("keywords")
    yield partial.func, trail
    for key, value in vars(partial).items():
        yield value, trail.attribute(key)


PARTS: dict[type, tuple[str, ...]] = {
    property: ("fget", "fset", "fdel"),
    classmethod: ("__func__",),
    staticmethod: ("__func__",),
    functools.cached_property: ("func",),
    slice: ("start", "stop", "step"),
}
"""The attributes with which the search continues, for types that have no other state. An object in such an attribute
gets the name of the object that has the attribute.
"""


def of_parts(thing: Any, trail: Trail) -> Iterator[Step]:
    """Continue the search with the functions of a `property`, a `classmethod` or the like, or with a slice's bounds."""
    yield from ((getattr(thing, name), trail) for name in PARTS[type(thing)])


def of_generic(function: Any, name: Trail) -> Iterator[Step]:
    """Continue the search with the implementations of a `singledispatch` function, which has no other state."""
    yield from ((implementation, name) for implementation in function.registry.values())
