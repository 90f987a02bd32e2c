"""Pickles exceptions so that they are restored without their constructor, which may need more than `.args`."""

import copyreg
import pickle
from types import MemberDescriptorType
from typing import Any, Final

from . import by_value

_HEAP_TYPE: Final = 1 << 9
"""The flag of types that are made while Python runs, such as by class statements."""
_LEFT: Final = frozenset({"obj"})
"""Slots that are left out. `obj` of an AttributeError may be any object; plain pickle omits it too."""


def dumps(value: Any) -> bytes:
    """Pickle a value so that exceptions in it are restored without the constructors of their classes.

    Exceptions of built-in classes, and of classes that define how they are pickled, are pickled as usual. To unpickle
    the value, the client needs no module of the worker.

    Raises:
        BaseException: What pickling raised.
    """
    return by_value.dumps(value, _Pickler)


def noted(data: bytes, notes: list[str]) -> bytes:
    """Make a pickle that restores the exception in `data` with these notes in place of its own."""
    return pickle.dumps(_Noted(data, notes), 5)


class _Noted:
    def __init__(self, data: bytes, notes: list[str]) -> None:
        self._parts = (pickle.loads, (data,), {"__notes__": notes}, None, None, BaseException.__setstate__)

    def __reduce__(self) -> Any:
        return self._parts


def state(error: BaseException) -> dict[str, Any]:
    """What an exception holds, by attribute: its slots, its `__dict__` with the notes, and `args`.

    The attributes of built-in exceptions, such as `filename`, count as slots. Slots in _LEFT, and slots that were never
    set, are left out.
    """
    found: dict[str, Any] = {}
    seen = set(_LEFT)
    for kind in type(error).__mro__:
        if kind is BaseExceptionGroup:
            break  # its own attributes are read-only, and are made from its arguments
        for name, member in vars(kind).items():
            if name not in seen and isinstance(member, MemberDescriptorType) and not name.startswith("__"):
                try:
                    value = member.__get__(error)
                except AttributeError:
                    continue  # this slot was never set
                if value is not None or _made(kind):  # None in a built-in exception means that it was never set
                    found[name] = value
        seen.update(vars(kind))
    return found | vars(error) | {"args": error.args}


def _made(kind: type) -> bool:
    return bool(kind.__flags__ & _HEAP_TYPE)


def _native(kind: type) -> type:
    """The built-in class that determines the layout of a class's objects."""
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
        # This calls the constructor of the built-in exception below. The class's own constructor may need other
        # arguments, or may change its arguments a second time. The state is set attribute by attribute, without the
        # class's __setstate__, which may expect another state.
        return _native(kind).__new__, (kind, *obj.args), state(obj), None, None, BaseException.__setstate__
