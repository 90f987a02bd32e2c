"""Numbers of any library as Python's own; errors name the argument, not an operation inside the pool."""

import operator
from numbers import Real
from typing import overload


@overload
def whole(name: str, value: int) -> int: ...
@overload
def whole(name: str, value: int | None) -> int | None: ...
def whole(name: str, value: int | None) -> int | None:
    """A whole number, or None.

    Raises:
        TypeError: It is something else; the text names the argument.
    """
    try:
        return None if value is None else operator.index(value)
    except TypeError:
        raise TypeError(f"{name}={value!r}: give a whole number") from None


@overload
def seconds(name: str, value: float) -> float: ...
@overload
def seconds(name: str, value: float | None) -> float | None: ...
def seconds(name: str, value: float | None) -> float | None:
    """A number, or None.

    Raises:
        TypeError: It is something else; the text names the argument.
    """
    number: object = value
    if number is None or isinstance(number, int):
        return number
    if not isinstance(number, Real):
        raise TypeError(f"{name}={number!r}: give a number of seconds")
    return float(number)  # locks take no others
