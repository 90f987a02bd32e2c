"""Converts plain values to DynamoDB's and back. An item is in DynamoDB's form, with types; a row has plain values."""

from collections.abc import Mapping
from typing import Any

Row = dict[str, Any]
"""The names of attributes, each with a str, int, float or bytes; or None for an attribute that is not stored."""


def encode(row: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a row to an item. Names whose value is None are left out.

    >>> encode({"pk": "p", "version": 2, "due": None, "head": b"x"})
    {'pk': {'S': 'p'}, 'version': {'N': '2'}, 'head': {'B': b'x'}}
    """
    return {name: _typed(value) for name, value in row.items() if value is not None}


def decode(item: Mapping[str, Any]) -> Row:
    """Convert an item to a row. A float that is whole comes back as an int, because DynamoDB returns 5.0 as "5".

    >>> decode({"at": {"N": "1.5"}, "version": {"N": "2"}})
    {'at': 1.5, 'version': 2}
    """
    return {name: _plain(*value.popitem()) for name, value in ((name, dict(value)) for name, value in item.items())}


def _typed(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {"S": value}
    if isinstance(value, bytes):
        return {"B": value}
    return {"N": repr(value)}


def _plain(kind: str, value: Any) -> Any:
    if kind != "N":
        return value
    try:
        return int(value)
    except ValueError:
        return float(value)
