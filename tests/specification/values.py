"""Reads values of TLA+ as TLC prints them."""

import re
from collections.abc import Iterator
from typing import Any

TOKEN = re.compile(r'\s*(-?\d+\.\.-?\d+|<<|>>|\|->|:>|@@|[{}\[\](),]|-?\d+|"[^"]*"|\w+)')
STATE = re.compile(r"^STATE_\d+ ==\s*$(.*?)^$", re.MULTILINE | re.DOTALL)
VARIABLE = re.compile(r"^/\\ (\w+) = ", re.MULTILINE)

State = dict[str, Any]


def states(behaviour: str) -> list[State]:
    """Read a behaviour: the variables of each state."""
    return [_state(text) for text in STATE.findall(behaviour)]


def _state(text: str) -> State:
    _, *parts = VARIABLE.split(text)
    return {name: value(body) for name, body in zip(parts[::2], parts[1::2], strict=True)}


def value(text: str) -> Any:
    """Read a value. A set becomes a frozenset; a record and a function become a dictionary.

    >>> value('[a |-> <<1, {2}>>, b |-> (p :> TRUE @@ q :> -1)]')
    {'a': (1, frozenset({2})), 'b': {'p': True, 'q': -1}}
    """
    tokens = iter(TOKEN.findall(text))
    return _value(next(tokens), tokens)


def _value(token: str, tokens: Iterator[str]) -> Any:
    match token:
        case "<<":
            return tuple(_items(">>", tokens))
        case "{":
            return frozenset(_frozen(each) for each in _items("}", tokens))
        case "[":
            return dict(_pairs("|->", "]", tokens))
        case "(":
            return dict(_pairs(":>", ")", tokens))
        case "TRUE" | "FALSE":
            return token == "TRUE"
    return _plain(token)


def _plain(token: str) -> Any:
    if ".." in token:
        first, last = map(int, token.split(".."))
        return frozenset(range(first, last + 1))
    return int(token) if token.lstrip("-").isdigit() else token.strip('"')


def _items(end: str, tokens: Iterator[str]) -> Iterator[Any]:
    for token in tokens:
        if token == end:
            return
        if token != ",":
            yield _value(token, tokens)


def _pairs(arrow: str, end: str, tokens: Iterator[str]) -> Iterator[tuple[Any, Any]]:
    for token in tokens:
        if token == end:
            return
        if token not in {",", "@@"}:
            key = _value(token, tokens)
            assert next(tokens) == arrow
            yield key, _value(next(tokens), tokens)


def _frozen(item: Any) -> Any:
    """Make a record that is an element of a set hashable."""
    return Record(item) if isinstance(item, dict) else item


class Record(dict[str, Any]):
    """A record in a set."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))
