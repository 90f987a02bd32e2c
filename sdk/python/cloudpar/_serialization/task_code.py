"""Serializes functions. Remembers a function's pickle until the function, or an object that it captures, changes."""

import hashlib
import inspect
import threading
from collections import OrderedDict
from typing import Any, NamedTuple

from cloudpar.errors import TooLarge
from cloudpar.references import Reference
from cloudpar_protocol.limits import BLOB_BYTES
from cloudpar_protocol.payloads import Codec

from .footprint import Footprint, footprint
from .pickling import pickled

REMEMBERED, REMEMBERED_BYTES = 128, 1 << 20
"""How many functions are remembered, and the size of the largest pickle that is remembered, in bytes. The objects that
a remembered function captures stay in memory."""


class Code(NamedTuple):
    """A serialized function, and the modules that it needs.

    If the workers import the function by its name, `reference` is this name and `data` is empty.
    """

    name: str
    hash: str
    data: bytes
    reference: str | None = None
    modules: frozenset[str] = frozenset()

    def holding(self, data: bytes) -> "Code":
        """Return the same function with another pickle, for example a pickle that also contains the project's modules.

        Raises:
            TooLarge: The pickle exceeds the limit of task code.
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
        """The serialization of this function's task data and results."""
        return "pickle" if self.reference is None else "msgpack"


class CodeCache:
    """Serializes a function once for many packages, and again after a change of an object that it captures."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[int, tuple[Footprint, Code]] = OrderedDict()

    def get(self, function: Any) -> Code:
        """Return the task code of a function.

        Raises:
            SerializationError: The function cannot be pickled; the text names the part that is the cause.
            TooLarge: The function, with what it captures, exceeds the limit of task code.
            TypeError: The object is not callable, or is an async function.
        """
        if isinstance(function, Reference):
            return Code(function.text, hashlib.sha256(function.text.encode()).hexdigest(), b"", function.text)
        with self._lock:
            known = self._known.get(id(function))
            if known is not None and known[0].holds():
                self._known.move_to_end(id(function))
                return known[1]
        made_of = footprint(function)
        code = serialize(function)
        if made_of is None or len(code.data) > REMEMBERED_BYTES:
            return code
        with self._lock:
            self._known[id(function)] = (made_of, code)
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return code


def serialize(function: Any) -> Code:
    """Serialize a function without the cache. Raises like `CodeCache.get`."""
    check_function(function)
    name = function_name(function)
    data, modules = pickled(function, name)
    return Code(name, "", b"", modules=modules).holding(data)


def check_function(function: object) -> None:
    """Refuse an object that an executor cannot call to get a value.

    Raises:
        TypeError: The object is not callable, or is an async function.
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
            f"async functions are not supported: {function_name(function)} would return a coroutine that is never "
            "awaited; give a plain function that calls asyncio.run"
        )


def _is_async(function: object) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def function_name(function: Any) -> str:
    """The name of a callable for users, at most 200 characters."""
    name = getattr(function, "__qualname__", None) or getattr(function, "func", None) or type(function).__qualname__
    return str(name if isinstance(name, str) else getattr(name, "__qualname__", name))[:200]
