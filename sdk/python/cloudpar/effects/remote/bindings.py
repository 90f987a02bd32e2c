"""Watches names that a task can rebind: globals, nonlocals, defaults, class attributes. No rebinding is copied back.

A name has no elements that different tasks could write, so the pool cannot combine the writes of several tasks.
Therefore the pool only detects that a name was rebound: a *look* (see `containers`) reports it, and returns a function
that restores the old values. The objects that the names refer to are watched separately.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FunctionType

    from .containers import Look

# Python itself writes these names into classes and modules, and programs keep no data in them.
MACHINERY = frozenset({
    "__abstractmethods__", "__annotate__", "__annotate_func__", "__annotations__",
    "__annotations_cache__", "__builtins__", "__cached__", "__classcell__",
    "__conditional_annotations__", "__dataclass_fields__", "__dataclass_params__", "__dict__",
    "__doc__", "__file__", "__firstlineno__", "__loader__",
    "__match_args__", "__module__", "__name__", "__orig_bases__",
    "__package__", "__parameters__", "__path__", "__qualname__",
    "__slots__", "__spec__", "__static_attributes__", "__type_params__",
    "__warningregistry__", "__weakref__", "_abc_impl",
})  # fmt: skip


def watch_names(
    namespace: Callable[[], Any], problem: str, bind: Callable[[str, Any], None], unbind: Callable[[str], None]
) -> tuple[Look, Callable[[], None]]:
    """Watch the values of the names in `namespace()`, except those in MACHINERY.

    Returns the look, and a function that restores the values.

    Args:
        namespace: Returns the names and their values.
        problem: The key of `PROBLEMS` in `cloudpar.effects.errors` for a rebound name.
        bind: Gives a name a value.
        unbind: Deletes a name.
    """
    before = {name: value for name, value in namespace().items() if name not in MACHINERY}
    count = len(namespace())
    absent = object()

    def changed() -> list[str]:
        now = namespace()
        moved = [name for name, value in before.items() if now.get(name, absent) is not value]
        if len(now) == count and not moved:
            return moved
        return moved + [name for name in now if name not in before and name not in MACHINERY]

    def restore() -> None:
        for name in changed():
            if name in before:
                bind(name, before[name])
            else:
                unbind(name)

    def look() -> Any:
        names = changed()
        return (problem, names[0], None, restore) if names else None

    return look, restore


def watch_namespace(namespace: dict[str, Any], problem: str) -> Look:
    """Watch the globals of functions that are pickled by value, or the names of a module that is pickled by value."""
    return watch_names(lambda: namespace, problem, namespace.__setitem__, namespace.__delitem__)[0]


def watch_class(kind: type) -> tuple[Look, Callable[[], None]]:
    """Watch the attributes of a class that is pickled by value.

    In one process, cloudpickle keeps one class for all task codes that contain this class. The kept class has the
    attributes from the task code that was loaded last. The second returned function restores the attributes of this
    task code, and must be called before each task.
    """
    return watch_names(
        lambda: vars(kind),
        "class",
        lambda name, value: type.__setattr__(kind, name, value),
        lambda name: type.__delattr__(kind, name),
    )


def watch_function(function: FunctionType) -> Look:
    """Watch the closure and the defaults of a function that is pickled by value."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    empty = object()
    before = {name: _content(cell, empty) for name, cell in cells.items()}
    defaults, named = function.__defaults__, function.__kwdefaults__

    def look() -> Any:
        moved = [name for name, cell in cells.items() if _content(cell, empty) is not before[name]]
        if moved:
            return "nonlocal", moved[0], None, restore
        if function.__defaults__ is defaults and function.__kwdefaults__ is named:
            return None
        return "defaults", function.__name__, None, restore

    def restore() -> None:
        for name, cell in cells.items():
            if before[name] is not empty:
                cell.cell_contents = before[name]
            elif _content(cell, empty) is not empty:
                del cell.cell_contents
        function.__defaults__ = defaults
        function.__kwdefaults__ = named

    return look


def _content(cell: Any, empty: object) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return empty
