"""Errors about misspelled keyword arguments of the pool's calls.

They name the call as users write it, and the right keyword.
"""

import difflib
import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_OF_POOL = "Pool.__init__"
_optional: dict[str, list[str]] = {}
"""The sorted optional arguments of each call, by the call's name."""


def named(name: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator for a call of the pool.

    Errors about the call's arguments show `name`, such as "Pool.map". An unknown keyword raises a TypeError. Its text
    names a similar keyword of the call, says that the pool itself takes this keyword, or lists the call's optional
    arguments.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        function.__qualname__ = name
        parameters = inspect.signature(function).parameters.values()
        _optional[name] = sorted(each.name for each in parameters if each.default is not each.empty)
        known = {each.name for each in parameters if each.kind in {each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD}}

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            __tracebackhide__ = True
            if not known.issuperset(kwargs):
                raise _unexpected(name, next(key for key in kwargs if key not in known), known)
            return function(*args, **kwargs)

        return call

    return decorate


def _unexpected(name: str, key: str, known: set[str]) -> TypeError:
    similar = difflib.get_close_matches(key, sorted(known - {"self"}), n=1)
    if similar:
        meant = f". Did you mean {similar[0]!r}?"
    elif key in _optional.get(_OF_POOL, ()):
        meant = f": it is an argument of the pool itself, Pool({key}=...)"
    else:
        meant = f". It takes {', '.join(_optional[name])}"
    return TypeError(f"{name.removesuffix('.__init__')}() got an unexpected keyword argument {key!r}{meant}")
