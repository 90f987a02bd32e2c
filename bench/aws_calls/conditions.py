"""The part of DynamoDB's expression language that the adapters use."""

import re
from collections.abc import Callable, Mapping
from typing import Any

Row = Mapping[str, Any]
Values = Mapping[str, Any]

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda left, right: bool(left == right),
    ">=": lambda left, right: bool(left >= right),
    "<=": lambda left, right: bool(left <= right),
}


def plain(value: Any) -> Any:
    """Return a value without its type: {"N": "1"} becomes 1."""
    ((kind, content),) = value.items()
    return float(content) if kind == "N" else content


def holds(condition: str, row: Row | None, values: Values) -> bool:
    """Whether a condition holds for a stored row (None: there is no row). `#name` in a condition stands for `name`.

    >>> row = {"held": {"N": "5"}}
    >>> holds("#held = :five AND attribute_not_exists(gone)", row, {":five": {"N": "5"}})
    True
    >>> holds("attribute_exists(held)", None, {})
    False
    """
    return all(_term(term, row or {}, values) for term in condition.split(" AND ") if term)


def _term(term: str, row: Row, values: Values) -> bool:
    if found := re.fullmatch(r"attribute_(not_)?exists\((\w+)\)", term):
        return (found[2] in row) != bool(found[1])
    name, operator, value = term.removeprefix("#").split()
    return name in row and _COMPARE[operator](plain(row[name]), plain(values[value]))


def updated(expression: str, row: Row, values: Values, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the attributes that an update expression changes.

    >>> updated("ADD n :one SET m = m - :one", {"m": {"N": "3"}}, {":one": {"N": "1"}}, {})
    {'m': {'N': '2'}, 'n': {'N': '1'}}
    """
    after = dict(row)
    for clause, body in re.findall(r"(SET|ADD) (.*?)(?= SET | ADD |$)", expression):
        for action in body.split(", "):
            if clause == "ADD":
                name, value = action.split()
                after[name] = _number(plain(after.get(name, {"N": "0"})) + plain(values[value]))
            else:
                name, _, term = action.partition(" = ")
                after[names.get(name, name)] = _assigned(term, row, values)
    return after


def _assigned(term: str, row: Row, values: Values) -> Any:
    parts = term.split()
    if len(parts) == 1:
        return values[term]
    left, sign, right = plain(row[parts[0]]), parts[1], plain(values[parts[2]])
    return _number(left + right if sign == "+" else left - right)


def _number(value: float) -> dict[str, str]:
    return {"N": repr(int(value))}
