"""Pickles of exceptions that are rebuilt without their constructor, which may want other arguments than `.args`."""

import copyreg
import io
import pickle
from types import MemberDescriptorType
from typing import Any, Final

from .by_value import Pickler

_HEAP_TYPE: Final = 1 << 9
"""The flag of types that are made while Python runs, such as those of class statements."""
_LEFT: Final = frozenset({"obj"})
"""What an AttributeError was looked up on: anything, however large; plain pickle leaves it away, too."""


def dumps(value: Any) -> bytes:
    """Pickle with every exception within made whole; to unpickle it needs the standard library and its classes."""
    file = io.BytesIO()
    _Pickler(file, protocol=5).dump(value)
    return file.getvalue()


def noted(data: bytes, notes: list[str]) -> bytes:
    """The pickle of an exception that has these notes, from one that may have lost them."""
    return pickle.dumps(_Noted(data, notes), 5)


class _Noted:
    def __init__(self, data: bytes, notes: list[str]) -> None:
        self._parts = (pickle.loads, (data,), {"__notes__": notes}, None, None, BaseException.__setstate__)

    def __reduce__(self) -> Any:
        return self._parts


def state(error: BaseException) -> dict[str, Any]:
    """All that an exception holds, by attribute: its arguments, its `__dict__` (notes, too), its slots."""
    found: dict[str, Any] = {}
    seen = set(_LEFT)
    for kind in type(error).__mro__:
        if kind is BaseExceptionGroup:
            break  # its own are read-only, and made of its arguments
        for name, member in vars(kind).items():
            if name not in seen and isinstance(member, MemberDescriptorType) and not name.startswith("__"):
                try:
                    value = member.__get__(error)
                except AttributeError:
                    continue  # a slot that was never set
                if value is not None or _made(kind):  # None of a built-in exception: never set
                    found[name] = value
        seen.update(vars(kind))
    return found | vars(error) | {"args": error.args}


def _made(kind: type) -> bool:
    return bool(kind.__flags__ & _HEAP_TYPE)


def _native(kind: type) -> type:
    """The built-in class that lays out the objects of a class."""
    base = kind.__base__
    return _native(base) if base and _made(kind) else kind


def _has_own_way(kind: type) -> bool:
    if kind in copyreg.dispatch_table:
        return True
    reducing = (each for each in kind.__mro__ if "__reduce__" in vars(each) or "__reduce_ex__" in vars(each))
    return _made(next(reducing))


class _Pickler(Pickler):
    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        if not isinstance(obj, BaseException) or not _made(kind) or _has_own_way(kind):
            return super().reducer_override(obj)
        # The constructor of the built-in exception below: one of the class itself may want other arguments, or, given
        # those, say again what it made of them. State is set by attribute, past a __setstate__ for another state.
        return _native(kind).__new__, (kind, *obj.args), state(obj), None, None, BaseException.__setstate__
