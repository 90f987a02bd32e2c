"""Functions to task code, remembered for as long as nothing that would be sent has changed."""

import hashlib
import inspect
import sys
import threading
from collections import OrderedDict
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from cloudpar_protocol.limits import BLOB_BYTES
from cloudpar_protocol.payloads import Codec

from .errors import TooLarge
from .local_modules import LOCAL_MODULES
from .references import Reference
from .serialization import SCALARS, pickled

REMEMBERED, REMEMBERED_BYTES = 128, 1 << 20
"""How many functions are remembered, and how large a one at most: what they capture is kept alive with them."""


class Code(NamedTuple):
    """A serialized function, or one that the workers import by its name: then `data` is empty.

    `modules` are those that it needs.
    """

    name: str
    hash: str
    data: bytes
    reference: str | None = None
    modules: frozenset[str] = frozenset()

    def holding(self, data: bytes) -> "Code":
        """The same function in a larger pickle.

        Raises:
            TooLarge: It is over the limit.
        """
        if len(data) > BLOB_BYTES:
            raise TooLarge(
                f"{self.name} takes {len(data):,} bytes with all that it captures, and task code may have "
                f"{BLOB_BYTES:,}: let the task read the large part itself from a path or a URL, or give it as task "
                "data (map sends a piece to each task)"
            )
        return self._replace(data=data, hash=hashlib.sha256(data).hexdigest())

    @property
    def codec(self) -> Codec:
        """How its task data and results are serialized."""
        return "pickle" if self.reference is None else "msgpack"


class CodeCache:
    """Serializes a function once for many packages, and again when what it captures is another object."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[int, tuple[tuple[object, ...], Code]] = OrderedDict()

    def get(self, function: Any) -> Code:
        """The task code of a function.

        Raises:
            SerializationError: It does not pickle; the text names the variable.
            TooLarge: It captures more than task code may have.
            TypeError: It is no function, or an async one.
        """
        if isinstance(function, Reference):
            return Code(function.text, hashlib.sha256(function.text.encode()).hexdigest(), b"", function.text)
        parts = footprint(function)
        if parts is None:
            return serialize(function)
        with self._lock:
            known = self._known.get(id(function))
            if known is not None and len(known[0]) == len(parts) and all(map(_is, known[0], parts)):
                self._known.move_to_end(id(function))
                return known[1]
        code = serialize(function)
        if len(code.data) > REMEMBERED_BYTES:
            return code
        with self._lock:
            self._known[id(function)] = (parts, code)
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return code


def _is(one: object, other: object) -> bool:
    return one is other


def serialize(function: Any) -> Code:
    """Make task code of a function, whatever is remembered."""
    check_function(function)
    name = function_name(function)
    data, modules = pickled(function, name)
    return Code(name, "", b"", modules=modules).holding(data)


def check_function(function: object) -> None:
    """Refuse what an executor cannot call for a value.

    Raises:
        TypeError: It is not callable, or async.
    """
    if isinstance(function, str):
        raise TypeError(
            f"{function!r} is no function: for one that is installed at the workers write "
            f'cloudpar.reference("package.module:function")'
        )
    if not callable(function):
        raise TypeError(f"{function!r} is no function: give a callable, and its arguments after it")
    if any(map(_is_async, (function, type(function).__call__))):
        raise TypeError(
            f"async functions are not supported: {function_name(function)} would return a coroutine that nobody "
            "awaits; give a plain function that calls asyncio.run"
        )


def _is_async(function: object) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def function_name(function: Any) -> str:
    """What to call a callable, at most 200 characters."""
    name = getattr(function, "__qualname__", None) or getattr(function, "func", None) or type(function).__qualname__
    return str(name if isinstance(name, str) else getattr(name, "__qualname__", name))[:200]


def footprint(function: object) -> tuple[object, ...] | None:
    """Every object that the pickle of a function is made from, in a fixed order; None if it may hold mutable ones.

    While all of them are the same objects and none can change, the pickle cannot change either.
    """
    parts: list[object] = []
    return tuple(parts) if _collect(function, parts, set()) else None


def _collect(value: Any, parts: list[object], seen: set[int]) -> bool:
    if id(value) in seen:
        return True
    seen.add(id(value))
    parts.append(value)
    kind = type(value)
    if kind is FunctionType:
        return _by_reference(value) or _collect_function(value, parts, seen)
    if kind is tuple or kind is frozenset:
        return all(_collect(part, parts, seen) for part in value)
    if kind is BuiltinFunctionType:
        return value.__self__ is None or isinstance(value.__self__, ModuleType)
    if kind is ModuleType:
        return value.__name__ not in LOCAL_MODULES.strays()
    return kind in SCALARS or (isinstance(value, type) and _by_reference(value))


def _by_reference(value: Any) -> bool:
    """Whether only the name of a function or class is sent."""
    module = sys.modules.get(value.__module__ or "")
    if module is None or value.__module__ == "__main__" or value.__module__ in LOCAL_MODULES.strays():
        return False
    found: object = module
    for name in value.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is value


def _collect_function(function: FunctionType, parts: list[object], seen: set[int]) -> bool:
    if function.__dict__ or function.__kwdefaults__:
        return False
    parts.append(function.__code__)
    if function.__defaults__ and not _collect(function.__defaults__, parts, seen):
        return False
    for cell in function.__closure__ or ():
        try:
            content = cell.cell_contents
        except ValueError:
            return False
        if not _collect(content, parts, seen):
            return False
    return _collect_globals(function.__code__, function.__globals__, parts, seen)


def _collect_globals(code: CodeType, namespace: dict[str, Any], parts: list[object], seen: set[int]) -> bool:
    for name in code.co_names:  # attributes are among them: at worst a function is serialized again for nothing
        if name in namespace and not _collect(namespace[name], parts, seen):
            return False
    return all(
        _collect_globals(constant, namespace, parts, seen)
        for constant in code.co_consts
        if isinstance(constant, CodeType)
    )
