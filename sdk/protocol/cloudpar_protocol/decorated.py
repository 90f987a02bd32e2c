"""Pickles functions with the decorators `lru_cache`, `cached_property` and `singledispatch` of the standard library.

Plain pickle fails for some of these objects, or sends a name that the receiver does not find, as for functions of
`__main__`. This module makes them travel by value: in task code and task data to an executor, and in results to the
client. They arrive with the same behaviour, but with empty caches. The side that unpickles needs only the standard
library, and nothing of this package.
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
"""Attributes that the decorators set themselves; all others are the user's."""


def reduce(thing: Any, is_found: Callable[[Any], bool]) -> tuple[Any, ...] | None:
    """Return a value that says how to pickle an object, like `__reduce__`; None: pickle the object as usual.

    Args:
        thing: The object.
        is_found: Returns whether the process that unpickles finds a decorated function by its module and name.
    """
    kind = type(thing)
    if kind is functools.cached_property:
        # Before Python 3.12 a cached_property contains a lock, which cannot be pickled.
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
    """Whether a function was made by `singledispatch`."""
    return type(thing) is FunctionType and thing.__code__ is _SINGLE_DISPATCH


def has_name(thing: Any) -> bool:
    """Whether this process, and so perhaps others, finds an object by its module and name.

    False for the objects of `__main__`, which is a different module in each process.
    """
    if thing.__module__ in {None, "__main__", "__mp_main__"}:  # the last is `__main__` in spawned processes
        return False
    found: Any = sys.modules.get(thing.__module__)
    for name in thing.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is thing


def _added(thing: Any) -> dict[str, Any]:
    """Return the attributes that the user has set."""
    wrapped = vars(getattr(thing, "__wrapped__", thing))
    return {
        name: value
        for name, value in vars(thing).items()
        if name not in _MADE and name not in _NAMES and wrapped.get(name, _MADE) is not value
    }


class _Decorator:
    """A decorator that is pickled as the call that makes it."""

    def __init__(self, make: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._call = make, arguments

    def __call__(self, function: Any) -> Any:
        """Decorate a function in this process."""
        make, arguments = self._call
        return make(*arguments)(function)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._call


@functools.cache
def _fill_generic() -> Callable[[Any, Any], None]:
    def fill(generic: Any, state: tuple[dict[str, Any], dict[str, Any], dict[type, Any]]) -> None:
        # Pickle calls this after it has made the generic function, because the implementations may refer to it.
        names, added, registry = state
        for name, value in names.items():
            setattr(generic, name, value)
        vars(generic).update(added)
        for kind, implementation in registry.items():
            generic.register(kind, implementation)

    fill.__module__ = "__main__"  # makes it travel by value: a worker may not have the SDK
    return fill
