"""Tells which objects cloudpickle pickles by value, and which objects it pickles with all their items and attributes.

`Graph` searches a body for the objects that tasks can change. It must find exactly the objects that the body's pickle
contains, because writes to an object that it does not find would be lost. Only cloudpickle knows these objects, so this
module imports a private function of cloudpickle. If a later release renames this function, the import fails with an
error, and no writes are lost.
"""

from __future__ import annotations

import copyreg
import datetime as dt
import decimal
import fractions
import functools
import pathlib
import re
import sys
import types
import uuid
from collections import Counter, OrderedDict, defaultdict
from enum import Enum
from typing import Any

from cloudpickle.cloudpickle import _should_pickle_by_reference

from cloudpar_protocol import function_globals

_ATOMS = frozenset({
    type(None), type(...), type(NotImplemented), bool, int, float, complex, str, bytes, range,
    dt.date, dt.datetime, dt.time, dt.timedelta, dt.timezone,
    decimal.Decimal, fractions.Fraction, uuid.UUID, re.Pattern,
    pathlib.PosixPath, pathlib.WindowsPath, pathlib.PurePosixPath, pathlib.PureWindowsPath,
    types.CodeType, types.GetSetDescriptorType, types.MemberDescriptorType, types.WrapperDescriptorType,
    types.MethodDescriptorType, types.ClassMethodDescriptorType, type(functools.lru_cache(len)),
})  # fmt: skip

# Classes with pickling methods of their own that nevertheless pickle all items and attributes unchanged.
_TRANSPARENT = (OrderedDict, defaultdict, Counter, set, frozenset, types.SimpleNamespace)
_COPIED_ARGUMENTS = tuple(vars(kind)["__getnewargs__"] for kind in (int, float, complex, str, bytes, tuple))


def is_by_value(thing: types.FunctionType | types.ModuleType | type) -> bool:
    """Return whether pickles contain a function, module or class itself, and not only its name for an import."""
    return not _should_pickle_by_reference(thing)


def global_names(function: types.FunctionType) -> list[str]:
    """Return the names of the globals that a function's pickle contains: those in its code and in code nested in it."""
    return [name for name in function_globals.global_names(function.__code__) if name in function.__globals__]


def is_atomic(kind: type) -> bool:
    """Return whether instances of exactly this class are immutable and refer to nothing mutable."""
    if kind in _ATOMS:
        return True
    if issubclass(kind, Enum):
        return not is_by_value(kind)
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return False
    return issubclass(kind, numpy.generic | numpy.dtype | numpy.ufunc) and not issubclass(kind, numpy.void)


def has_python_code(kind: type) -> bool:
    """Return whether a class has functions written in Python.

    If a class of a C extension cannot be imported by its name, it looks like a class that is pickled by value. But it
    has no functions written in Python.
    """
    return any(isinstance(value, types.FunctionType) for base in kind.__mro__ for value in vars(base).values())


def is_plain(kind: type) -> bool:
    """Return whether pickling an instance sends its items and attributes unchanged.

    A class with pickling methods of its own may pickle copies of its items and attributes instead of these objects, or
    may leave attributes out. A write to the object in a worker then does not show how to change the caller's object.
    """
    if kind in copyreg.dispatch_table:
        return False
    native: type = next((base for base in kind.__mro__ if base in _TRANSPARENT), object)
    same = all(
        getattr(kind, name, None) == getattr(native, name, None)
        for name in ("__reduce__", "__reduce_ex__", "__getnewargs_ex__")
    )
    return same and _keeps_state(kind) and _keeps_arguments(kind)


def _keeps_state(kind: type) -> bool:
    own = (getattr(kind, "__getstate__", None), getattr(kind, "__setstate__", None))
    from_dataclasses = all(getattr(method, "__module__", "") == "dataclasses" for method in own)
    return from_dataclasses or (own[0] is object.__getstate__ and own[1] is None)


def _keeps_arguments(kind: type) -> bool:
    own: Any = getattr(kind, "__getnewargs__", None)
    return own is None or own in _COPIED_ARGUMENTS or issubclass(kind, tuple)
