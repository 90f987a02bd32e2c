"""Sample messages of every type, generated from the types: the same on every run and machine.

Each field takes the edge values of its type in turn, including both sides of every size at which MessagePack changes
its encoding. A new field of a message is in the samples automatically.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec
from msgspec import inspect

from cloudpar_protocol.codec import ErrorReply
from cloudpar_protocol.routes import ROUTES

_INTEGERS = (0, 1, 127, 128, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**63 - 1, -1, -32, -33, -(2**31), -(2**63))
_FLOATS = (0.0, 0.5, 1.0, 19.75, 1e9, 1.7976931348623157e308, 5e-324, -0.1)
_TEXTS = ("a", "", "pi = 3,14 €", 'quote " backslash \\ newline \n nul \x00', "é漢😀", "x" * 31, "x" * 32, "y" * 200)
_BYTES = (b"\x00\xff", b"", b"\x80\x04K\x01.", b"\xc1" * 256)
_PATTERNED = (
    "0" * 64, "0123456789abcdef" * 4, "a:b", "package.module:Class.method", f"package.module:{'f' * 185}", "2026-11-24",
    "arn:aws:iam::123456789012:role/cloudpar/ada",
)  # fmt: skip
"""Candidates for fields with a pattern; each field takes those that match."""
_DEPTH = 4
"""The depth below which lists hold one item, so that the samples stay readable."""
_FEW: dict[type[inspect.Type], tuple[Any, ...]] = {
    inspect.BoolType: (False, True),
    inspect.NoneType: (None,),
    inspect.RawType: (msgspec.Raw(b"\x03"), msgspec.Raw(b"\x92\x01\xc0")),
}
"""All values of each type that has only a few; for RawType, two encoded values."""


def message_types() -> dict[str, type[msgspec.Struct]]:
    """Return all message types by name: requests, replies, the error reply, and the structs inside them."""
    tops = chain((ErrorReply,), chain.from_iterable((route.request, route.reply) for route in ROUTES))
    found = {kind.__name__: kind for top in tops for kind in _structs(inspect.type_info(top))}
    return dict(sorted(found.items()))


def samples(kind: type[msgspec.Struct]) -> list[Any]:
    """Return different instances of a message type; the first has only the required fields."""
    info = inspect.type_info(kind)
    least = _struct(info, 0, _DEPTH, required_only=True)
    count = max((len(_scalars(field.type)) for field in _fields(info)), default=1)
    made = [least, *(_struct(info, step, 0) for step in range(min(max(count, 3), 9)))]
    return [sample for number, sample in enumerate(made) if sample not in made[:number]]


def _fields(info: Any) -> Sequence[inspect.Field]:
    return info.fields if isinstance(info, inspect.StructType) else ()


def _structs(info: inspect.Type) -> Iterator[type[msgspec.Struct]]:
    if isinstance(info, inspect.StructType):
        yield info.cls
    for inner in _inner(info):
        yield from _structs(inner)


def _inner(info: inspect.Type) -> Sequence[inspect.Type]:
    match info:
        case inspect.StructType():
            return [field.type for field in info.fields]
        case inspect.ListType():
            return [info.item_type]
        case inspect.TupleType():
            return info.item_types
        case inspect.DictType():
            return [info.key_type, info.value_type]
        case inspect.UnionType():
            return info.types
        case _:
            return []


def _scalars(info: inspect.Type) -> list[Any]:
    """Return the edge values of a type that has no fields; for a union, those of all its types without fields."""
    values: Iterable[Any] = ()
    match info:
        case inspect.IntType():
            values = _integers(info)
        case inspect.FloatType():
            least, most = (-1e308 if info.ge is None else info.ge), (1e308 if info.le is None else info.le)
            values = (value for value in _FLOATS if least <= value <= most and (info.gt is None or value > info.gt))
        case inspect.StrType() if info.pattern is not None:
            values = (value for value in _PATTERNED if re.search(info.pattern, value))
        case inspect.StrType():
            sizes = range(info.min_length or 0, (info.max_length or 10_000) + 1)
            values = (value for value in _TEXTS if len(value) in sizes)
        case inspect.BytesType():
            values = _BYTES if info.min_length is None else (bytes(range(info.min_length)),)
        case inspect.LiteralType():
            values = info.values
        case inspect.UnionType():
            values = chain.from_iterable(map(_scalars, info.types))
        case _:
            values = _FEW.get(type(info), ())
    return list(values)


def _integers(info: inspect.IntType) -> list[int]:
    least = -(2**63) if info.ge is None else info.ge
    most = 2**63 - 1 if info.le is None else info.le
    if info.lt is not None:
        most = min(most, info.lt - 1)
    return sorted({least, most, *(value for value in _INTEGERS if least <= value <= most)})


def _value(info: inspect.Type, step: int, depth: int) -> Any:
    match info:
        case inspect.StructType():
            return _struct(info, step, depth + 1)
        case inspect.UnionType() if not all(map(_scalars, info.types)):
            return _value(info.types[step % len(info.types)], step // len(info.types), depth)
        case inspect.ListType():
            size = 1 if depth >= _DEPTH else min(max(step % 3, info.min_length or 0), info.max_length or 2)
            return [_value(info.item_type, step + number, depth + 1) for number in range(size)]
        case inspect.TupleType():
            return tuple(_value(inner, step + number, depth + 1) for number, inner in enumerate(info.item_types))
        case inspect.DictType():
            keys = {_value(info.key_type, step + number, depth + 1) for number in range(step % 3)}
            return {key: _value(info.value_type, step, depth + 1) for key in sorted(keys)}
        case _:
            scalars = _scalars(info)
            return scalars[step % len(scalars)]


def _struct(info: Any, step: int, depth: int, *, required_only: bool = False) -> Any:
    values = {
        field.name: 1 if field.name == "v" else _value(field.type, step + number, depth)
        for number, field in enumerate(info.fields)
        if field.required or not required_only
    }
    return info.cls(**values)
