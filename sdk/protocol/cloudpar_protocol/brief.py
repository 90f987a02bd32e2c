"""Describes values, such as the arguments of a failed task, in short texts for error messages.

Unlike a `repr`, such a text has one line and a bounded length, and takes only microseconds to make, however large the
value is. This module calls no methods of users' classes, because these may be slow, print or raise. It reads
attributes, though, and reading an attribute may run code of a user's class.
"""

import dataclasses
from collections.abc import Iterable
from enum import Enum
from itertools import islice
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Final

from .limits import INPUT_CHARS

_DEPTH: Final = 3
_ITEMS: Final = 4
_TEXT_CHARS: Final = 40
_INTEGER_BITS: Final = 256
_PLAIN: Final = frozenset({"builtins", "datetime", "decimal", "fractions", "uuid", "pathlib", "pathlib._local", "re"})
"""Modules whose objects have a fast and short `repr`."""
_ARRAYS: Final = frozenset(
    {"cudf", "cupy", "dask", "jax", "jaxlib", "numpy", "pandas", "polars", "pyarrow", "scipy", "torch", "xarray"}
)
"""Libraries whose objects `_array` describes, mostly by their `shape`."""
_NAMED: Final = (FunctionType, BuiltinFunctionType, MethodType, ModuleType, type)
_CONTAINERS: Final = (dict, list, tuple, set, frozenset)
_BRACKETS: Final[dict[type, str]] = {list: "[]", tuple: "()", set: "{}"}


def brief(value: object) -> str:
    """Describe a value in at most INPUT_CHARS characters. If its class raises an error, return only the class's name.

    >>> brief({"text": "x" * 1000, "rows": [[1.5, None], (2,)]})
    "{'text': 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'... (1000 long), 'rows': [[1.5, None], (2,)]}"
    """
    try:
        return _cut(_brief(value, _DEPTH))
    except BaseException:  # noqa: BLE001 - users' classes may raise anything, even SystemExit, when an attribute is read
        return _cut(f"<{_class_name(value)}>")


def brief_call(data: Any, call: str) -> str:
    """Describe the arguments of a task, by its package's call style.

    >>> brief_call(3, "value"), brief_call(((5,), {"b": 0}), "args_kwargs")
    ('value 3', 'arguments (5, b=0)')
    """
    if call == "value":
        return _cut(f"value {brief(data)}")
    try:
        arguments, keywords = (tuple(data), {}) if call == "args" else data
        parts = [_brief(each, _DEPTH) for each in arguments[:_ITEMS]]
        parts += _pairs(keywords.items(), _DEPTH)
        return _cut(f"arguments ({_joined(parts, len(arguments) + len(keywords))})")
    except BaseException:  # noqa: BLE001 - as in `brief`
        return _cut(f"arguments <{_class_name(data)}>")


def _cut(text: str) -> str:
    # Names, such as those of keyword arguments, may have any characters: line breaks, or half a surrogate pair.
    text = "".join(each if each.isprintable() else _escaped(each) for each in text[: INPUT_CHARS + 1])
    return text if len(text) <= INPUT_CHARS else f"{text[: INPUT_CHARS - 3]}..."


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _brief(value: Any, depth: int) -> str:
    kind = type(value)
    if kind is int and value.bit_length() > _INTEGER_BITS:
        text = f"<int of {value.bit_length()} bits>"
    elif kind is str or kind is bytes or kind is bytearray:
        text = repr(value[:_TEXT_CHARS]) + ("" if len(value) <= _TEXT_CHARS else f"... ({len(value)} long)")
    elif issubclass(kind, _NAMED):
        text = getattr(value, "__qualname__", None) or value.__name__
    elif issubclass(kind, Enum):
        text = f"{kind.__name__}.{value._name_}"
    elif issubclass(kind, _CONTAINERS):
        text = _container(value, kind, depth)
    elif kind.__module__ in _PLAIN and not issubclass(kind, BaseException):
        text = repr(value)
    elif kind.__module__.partition(".")[0] in _ARRAYS:
        text = _array(value, kind)
    else:
        text = _object(value, kind, depth)
    return str(text)


def _container(value: Any, kind: type, depth: int) -> str:
    base: Any = next(each for each in _CONTAINERS if issubclass(kind, each))
    count = base.__len__(value)  # not an overridden `__len__`
    fields = getattr(kind, "_fields", None)
    if not depth:
        return f"<{kind.__qualname__} of {count}>"
    if base is tuple and fields:
        return f"{kind.__qualname__}({_joined(_pairs(zip(fields, value, strict=False), depth), count)})"
    if base is dict:
        items = islice(dict.items(value), _ITEMS)
        pairs = [f"{_brief(key, depth - 1)}: {_brief(each, depth - 1)}" for key, each in items]
        text = f"{{{_joined(pairs, count)}}}"
        return text if kind is dict else f"{kind.__qualname__}({text})"
    text = _joined([_brief(each, depth - 1) for each in islice(base.__iter__(value), _ITEMS)], count)
    brackets = _BRACKETS.get(kind)
    if brackets is None or (base is set and not count):
        return f"{kind.__qualname__}({text})"
    return f"{brackets[0]}{text}{',' if base is tuple and count == 1 else ''}{brackets[1]}"


def _array(value: Any, kind: type) -> str:
    """Describe an array or a table by its shape, and a scalar or a short array of numbers by its content."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if kind.__module__ == "numpy" and shape == () and kind.__name__ != "ndarray":
        return repr(value)
    if (
        isinstance(shape, tuple)
        and len(shape) == 1
        and shape[0] <= _ITEMS
        and getattr(dtype, "kind", "") in set("biufc")
    ):
        return f"{kind.__name__}({[each.item() for each in value]})"
    name = f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}"
    return f"<{name}{'' if shape is None else f' {tuple(shape)}'}{'' if dtype is None else f' {dtype}'}>"


def _object(value: Any, kind: type, depth: int) -> str:
    if not depth:
        return f"<{kind.__qualname__}>"
    held = _attributes(value, kind)
    return (
        f"{kind.__qualname__}({_joined(_pairs(held.items(), depth), len(held))})" if held else f"<{kind.__qualname__}>"
    )


def _attributes(value: Any, kind: type) -> dict[str, Any]:
    if issubclass(kind, BaseException):
        return {"args": value.args}
    slots = [each.name for each in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
    for base in kind.__mro__:
        own = vars(base).get("__slots__", ())
        slots += (own,) if isinstance(own, str) else own
    held: dict[str, Any] = {}
    for name in slots:
        try:
            held[name] = object.__getattribute__(value, name)
        except AttributeError:
            continue  # the slot was never set
    held |= getattr(value, "__dict__", {})
    return {name: each for name, each in held.items() if not name.startswith("_")}


def _pairs(pairs: Iterable[tuple[str, Any]], depth: int) -> list[str]:
    return [f"{name}={_brief(each, depth - 1)}" for name, each in islice(pairs, _ITEMS)]


def _joined(parts: list[str], count: int) -> str:
    return ", ".join(parts) + (f", ... ({count} in all)" if count > len(parts) else "")


def _class_name(value: object) -> str:
    return str(type.__getattribute__(type(value), "__qualname__"))
