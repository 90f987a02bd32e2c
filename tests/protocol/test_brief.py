"""Short texts of values: bounded, on one line, and made without running users' code."""

import enum
import functools
import threading
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any, NoReturn

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudpar_protocol.brief import brief, brief_call
from cloudpar_protocol.limits import INPUT_CHARS

Row = namedtuple("Row", "Index price")  # noqa: PYI024 - pandas makes them like this


class Side(enum.Enum):
    BUY = 1


@dataclass(frozen=True)
class Order:
    side: Side
    sizes: list[int]


class Hostile:
    """A class of which every method raises that a text could call."""

    def __init__(self) -> None:
        self.price = 3
        self._secret = "s"

    def _refuse(self, *_: Any) -> NoReturn:
        raise SystemExit("the code of a user was run")

    __repr__ = __str__ = __format__ = __len__ = __iter__ = __eq__ = __hash__ = __bool__ = _refuse
    __getattr__ = _refuse


class HostileList(list[int]):
    def __iter__(self) -> Iterator[int]:
        raise SystemExit("the code of a user was run")

    def __len__(self) -> int:
        raise SystemExit("the code of a user was run")


class Slotted:
    __slots__ = ("price", "unset")

    def __init__(self) -> None:
        self.price = 3


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (7312, "7312"), (1.5, "1.5"), (None, "None"), ("a\nb", r"'a\nb'"), (b"x", "b'x'"), (range(3), "range(0, 3)"),
        ((1,), "(1,)"), ([1, [2, [3, [4]]]], "[1, [2, [3, <list of 1>]]]"), (set(), "set()"), ({1}, "{1}"),
        ({"a": 1, 2: ()}, "{'a': 1, 2: ()}"), (frozenset({1}), "frozenset(1)"),
        (list(range(100)), "[0, 1, 2, 3, ... (100 in all)]"), ("x" * 99, f"'{'x' * 40}'... (99 long)"),
        (2**300, "<int of 301 bits>"), (Row(3, 1.5), "Row(Index=3, price=1.5)"), (Side.BUY, "Side.BUY"),
        (Order(Side.BUY, [1]), "Order(side=Side.BUY, sizes=[1])"), (OrderedDict(a=1), "OrderedDict({'a': 1})"),
        (defaultdict(int, a=1), "defaultdict({'a': 1})"), (date(2026, 1, 2), "datetime.date(2026, 1, 2)"),
        (Decimal("1.20"), "Decimal('1.20')"), (PurePosixPath("a/b"), "PurePosixPath('a/b')"), (len, "len"),
        (Order, "Order"), (ValueError("x", 3), "ValueError(args=('x', 3))"), (threading.Lock(), "<lock>"),
        (functools.partial(len), "<partial>"), (Slotted(), "Slotted(price=3)"), (Hostile(), "Hostile(price=3)"),
        (HostileList([1, 2]), "HostileList(1, 2)"), (np.float64(2.5), "np.float64(2.5)"),
        (np.zeros((300, 200)), "<numpy.ndarray (300, 200) float64>"), (np.array([1, 2]), "ndarray([1, 2])"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)  # fmt: skip
def test_each_kind_of_value_has_its_text(value: object, text: str) -> None:
    assert brief(value) == text


def test_a_value_that_contains_itself_has_a_bounded_text() -> None:
    held: list[Any] = []
    held.append(held)
    assert brief(held) == "[[[<list of 1>]]]"


@pytest.mark.parametrize("kind", [ZeroDivisionError, SystemExit])
def test_a_value_whose_attributes_raise_has_a_text(kind: type[BaseException]) -> None:
    class Broken:
        def __getattribute__(self, name: str) -> Any:
            raise kind

    assert brief(Broken()).endswith("Broken>")
    assert brief_call(Broken(), "args").endswith("Broken>")


@given(
    st.recursive(
        st.none() | st.integers() | st.text() | st.binary() | st.floats(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_a_text_is_bounded_is_one_line_and_can_be_encoded(value: object) -> None:
    for text in (brief(value), *(brief_call(value, call) for call in ("value", "args", "args_kwargs"))):
        assert len(text) <= INPUT_CHARS
        assert len(text.encode().splitlines()) == 1


@pytest.mark.parametrize(
    ("data", "call", "text"),
    [
        (3, "value", "value 3"),
        ((5, "x"), "args", "arguments (5, 'x')"),
        ([5], "args", "arguments (5)"),
        (((5,), {"base": 2}), "args_kwargs", "arguments (5, base=2)"),
        (((), {"two\r\nlines": 2}), "args_kwargs", r"arguments (two\r\nlines=2)"),
        (((), {}), "args_kwargs", "arguments ()"),
        ((tuple(range(9)), {"k": 1}), "args_kwargs", "arguments (0, 1, 2, 3, k=1, ... (10 in all))"),
        (7, "args", "arguments <int>"),
    ],
)
def test_a_call_is_described_by_its_style(data: object, call: str, text: str) -> None:
    assert brief_call(data, call) == text
