"""How decorators of the standard library travel that plain pickle refuses, or sends as a name that workers do not have.

They are found on functions and classes of `__main__`, which travel by value: in task code and data to an executor, and
in results back. What arrives behaves as what was sent; caches arrive empty. The side that unpickles needs the standard
library for it, and nothing of this package.
"""

import functools
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

LRU_CACHE: type = type(functools.lru_cache(len))
_SINGLE_DISPATCH = functools.singledispatch(len).__code__  # type: ignore[attr-defined]
_NAMES = ("__module__", "__name__", "__qualname__", "__doc__")
_MADE = frozenset({"__wrapped__", "cache_parameters", "register", "dispatch", "registry", "_clear_cache"})
"""Attributes that the decorators set themselves."""


def reduce(thing: Any, is_found: Callable[[Any], bool]) -> tuple[Any, ...] | None:
    """What pickle is to make of a thing, as `__reduce__` says it; None if it is none of these, or found by its name.

    Args:
        thing: Anything.
        is_found: Whether the side that unpickles finds a decorated function by its module and name.
    """
    kind = type(thing)
    if kind is functools.cached_property:
        # Before Python 3.12 there is a lock in it.
        kept = {name: value for name, value in vars(thing).items() if name not in {"func", "lock"}}
        return functools.cached_property, (thing.func,), kept
    if kind is LRU_CACHE and not is_found(thing):
        parameters = thing.cache_parameters()
        decorator = _Decorator(functools.lru_cache, (parameters["maxsize"], parameters["typed"]))
        return decorator, (thing.__wrapped__,), _added(thing) or None
    if is_generic(thing) and not is_found(thing):
        names = {name: getattr(thing, name) for name in _NAMES}
        state = names, _added(thing), dict(thing.registry)
        return functools.singledispatch, (thing.registry[object],), state, None, None, _fill_generic()
    return None


def is_generic(thing: Any) -> bool:
    """Whether `singledispatch` made this function."""
    return type(thing) is FunctionType and thing.__code__ is _SINGLE_DISPATCH


def has_name(thing: Any) -> bool:
    """Whether this process finds a thing by its module and name, and another one may: not if it is of `__main__`."""
    if thing.__module__ in {None, "__main__", "__mp_main__"}:  # the script's module in a spawned process
        return False
    found: Any = sys.modules.get(thing.__module__)
    for name in thing.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is thing


def _added(thing: Any) -> dict[str, Any]:
    """Attributes that the user has set."""
    wrapped = vars(getattr(thing, "__wrapped__", thing))
    return {
        name: value
        for name, value in vars(thing).items()
        if name not in _MADE and name not in _NAMES and wrapped.get(name, _MADE) is not value
    }


class _Decorator:
    """Pickles as a call that makes a decorator."""

    def __init__(self, make: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._call = make, arguments

    def __call__(self, function: Any) -> Any:
        """Decorate here."""
        make, arguments = self._call
        return make(*arguments)(function)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._call


@functools.cache
def _fill_generic() -> Callable[[Any, Any], None]:
    def fill(generic: Any, state: tuple[dict[str, Any], dict[str, Any], dict[type, Any]]) -> None:
        # Only now, since implementations may refer to the generic function.
        names, added, registry = state
        for name, value in names.items():
            setattr(generic, name, value)
        vars(generic).update(added)
        for kind, implementation in registry.items():
            generic.register(kind, implementation)

    fill.__module__ = "__main__"  # so that it travels by value: a worker may have no SDK
    return fill
