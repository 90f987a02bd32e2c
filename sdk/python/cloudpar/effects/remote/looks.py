"""Makes the looks (see `containers`) that watch captured objects of each kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .arrays import watch_array
from .bindings import watch_class, watch_function, watch_namespace
from .containers import watch_attributes, watch_dict, watch_list, watch_set
from .identity import comparison
from .opaque import watch_hidden, watch_opaque

if TYPE_CHECKING:
    from collections.abc import Callable

    from .containers import Look


def watch(
    kinds: list[str], objects: list[Any], dump: Callable[[Any], bytes]
) -> tuple[list[tuple[int, Look]], list[Callable[[], None]]]:
    """Return the looks with the numbers of their objects, and the functions to call before each task.

    Args:
        kinds: The `Facet.kind` of each object, which says how the object is watched.
        objects: The objects, by number.
        dump: Pickles an object, to compare it with its earlier state.
    """
    differing = comparison()
    prepares: list[Callable[[], None]] = []
    namespaces: set[int] = set()

    def watch_kind(kind: type) -> list[Look]:
        look, prepare = watch_class(kind)
        prepares.append(prepare)
        return [look]

    def watch_code(function: Any) -> list[Look]:
        # Functions of one module share their globals, so the globals are watched only once.
        known = id(function.__globals__) in namespaces
        namespaces.add(id(function.__globals__))
        return [watch_function(function)] + ([] if known else [watch_namespace(function.__globals__, "global")])

    watches: dict[str, Callable[[Any], list[Look]]] = {
        "array": lambda thing: [watch_array(thing)],
        "attributes": lambda thing: [watch_attributes(thing)],
        "class": watch_kind,
        "dict": lambda thing: [watch_dict(thing, differing)],
        "function": watch_code,
        "hidden": lambda thing: [watch_opaque(thing, dump), watch_hidden(thing, dump)],
        "list": lambda thing: [watch_list(thing, differing)],
        "module": lambda thing: [watch_namespace(vars(thing), "module")],
        "opaque": lambda thing: [watch_opaque(thing, dump)],
        "set": lambda thing: [watch_set(thing)],
    }
    pairs = zip(kinds, objects, strict=True)
    return [(number, look) for number, (kind, thing) in enumerate(pairs) for look in watches[kind](thing)], prepares
