"""Pickles exceptions so that unpickling does not call their constructors: `.args` may lack some of their arguments."""

import copyreg
import pickle
from types import MemberDescriptorType
from typing import Any, Final

from . import by_value

_HEAP_TYPE: Final = 1 << 9
"""The flag of types that are made while Python runs, for example by class statements."""
_LEFT: Final = frozenset({"obj"})
"""Slots that this module does not pickle. `obj` of an AttributeError may be any object; plain pickle also omits it."""


def dumps(value: Any) -> bytes:
    """Pickle a value so that unpickling restores exceptions in it without the constructors of their classes.

    Exceptions of built-in classes, and of classes that define how they are pickled, are pickled as usual. To unpickle
    the value, the client needs no module of the worker.

    Raises:
        BaseException: What pickling raised.
    """
    return by_value.dumps(value, _Pickler)


def noted(data: bytes, notes: list[str]) -> bytes:
    """Make a pickle that restores the exception in `data`, with these notes instead of the exception's own notes."""
    return pickle.dumps(_Noted(data, notes), 5)


class _Noted:
    def __init__(self, data: bytes, notes: list[str]) -> None:
        self._parts = (pickle.loads, (data,), {"__notes__": notes}, None, None, BaseException.__setstate__)

    def __reduce__(self) -> Any:
        return self._parts


def state(error: BaseException) -> dict[str, Any]:
    """Return the content of an exception by attribute: its slots, its `__dict__` (which includes notes), and `args`.

    The attributes of built-in exceptions, such as `filename`, count as slots. Slots in _LEFT, and slots that were never
    set, are left out.
    """
    found: dict[str, Any] = {}
    seen = set(_LEFT)
    for kind in type(error).__mro__:
        if kind is BaseExceptionGroup:
            break  # the attributes of this class are read-only, and are made from `args`
        for name, member in vars(kind).items():
            if name not in seen and isinstance(member, MemberDescriptorType) and not name.startswith("__"):
                try:
                    value = member.__get__(error)
                except AttributeError:
                    continue  # this slot was never set
                if value is not None or _made(kind):  # None in a built-in exception means: never set
                    found[name] = value
        seen.update(vars(kind))
    return found | vars(error) | {"args": error.args}


def _made(kind: type) -> bool:
    return bool(kind.__flags__ & _HEAP_TYPE)


def _native(kind: type) -> type:
    """Return the nearest built-in base class, which determines the memory layout of a class's objects."""
    base = kind.__base__
    return _native(base) if base and _made(kind) else kind


def _has_own_way(kind: type) -> bool:
    if kind in copyreg.dispatch_table:
        return True
    reducing = (each for each in kind.__mro__ if "__reduce__" in vars(each) or "__reduce_ex__" in vars(each))
    return _made(next(reducing))


class _Pickler(by_value.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        if not isinstance(obj, BaseException) or not _made(kind) or _has_own_way(kind):
            return super().reducer_override(obj)
        # Unpickling calls `__new__` of the built-in base class, and not the constructor of the exception's own class.
        # That constructor may need other arguments, or may change its arguments a second time. The state is set
        # attribute by attribute, without the class's own __setstate__, which may expect another state.
        return _native(kind).__new__, (kind, *obj.args), state(obj), None, None, BaseException.__setstate__
