"""Hypothesis strategies for every message, made from the types: everything that the wire may carry."""

from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

# JSON cannot contain surrogate halves: no decoder would accept such a message.
_CHARACTERS = st.characters(codec="utf-8")


def messages(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """Valid instances of a message type."""
    return _values(inspect.type_info(kind))


def _values(info: inspect.Type) -> st.SearchStrategy[Any]:
    match info:
        case inspect.StructType():
            return st.builds(info.cls, **{field.name: _field(field) for field in info.fields})
        case inspect.UnionType():
            return st.one_of([_values(inner) for inner in info.types])
        case inspect.ListType():
            return st.lists(_values(info.item_type), min_size=info.min_length or 0, max_size=3)
        case inspect.TupleType():
            return st.tuples(*[_values(inner) for inner in info.item_types])
        case inspect.DictType():
            return st.dictionaries(_values(info.key_type), _values(info.value_type), max_size=3)
        case _:
            return _scalars(info)


def _field(field: inspect.Field) -> st.SearchStrategy[Any]:
    return st.just(1) if field.name == "v" else _values(field.type)


def _scalars(info: inspect.Type) -> st.SearchStrategy[Any]:
    match info:
        case inspect.IntType() | inspect.FloatType():
            return _numbers(info)
        case inspect.StrType() if info.pattern is not None:
            return st.from_regex(info.pattern).filter(lambda text: len(text) <= (info.max_length or len(text)))
        case inspect.StrType():
            return st.text(_CHARACTERS, min_size=info.min_length or 0, max_size=info.max_length)
        case inspect.BytesType():
            return st.binary(min_size=info.min_length or 0, max_size=info.max_length or 300)
        case inspect.LiteralType():
            return st.sampled_from(info.values)
        case _:
            return st.booleans() if isinstance(info, inspect.BoolType) else st.none()


def _numbers(info: inspect.IntType | inspect.FloatType) -> st.SearchStrategy[Any]:
    if isinstance(info, inspect.IntType):
        most = info.le if info.lt is None else info.lt - 1
        return st.integers(-(2**63) if info.ge is None else info.ge, 2**63 - 1 if most is None else most)
    return st.floats(
        min_value=info.ge if info.gt is None else info.gt,
        max_value=info.le,
        exclude_min=info.gt is not None,
        allow_nan=False,
        allow_infinity=False,
    )
