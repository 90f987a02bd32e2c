"""Checks the arguments of public calls. An error names the argument, the given value, and the allowed values.

Numbers of other libraries, such as NumPy, become Python's numbers. The checks refuse True and False as numbers, since
`workers=True` is a mistake.
"""

import math
import operator
import sys
from collections.abc import Iterable
from numbers import Real

from cloudpar.errors import ConfigurationError
from cloudpar_protocol.brief import brief
from cloudpar_protocol.limits import EXECUTORS

MOST_SECONDS = 1_000_000_000
"""The longest time that an argument may give, in seconds (32 years). Messages of the protocol accept no longer time."""


def whole(name: str, value: object, *, takes: str = "give a whole number") -> int:
    """Return a whole number as a Python int.

    Args:
        name: The name of the argument.
        value: The given value.
        takes: What the argument takes, for the error text.

    Raises:
        TypeError: The value is not a whole number.
        ValueError: The absolute value of the number does not fit in 63 bits.
    """
    try:
        number = operator.index(value)  # type: ignore[arg-type]  # raises for other types
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(f"{name}={brief(value)}: {takes}")
    if abs(number) > sys.maxsize:
        raise ValueError(f"{name}={brief(value)}: {takes}, of at most 64 bits")
    return number


def whole_or_none(name: str, value: object) -> int | None:
    """Do as `whole`, but return None for None."""
    return None if value is None else whole(name, value, takes="give a whole number, or None")


def seconds(name: str, value: object, *, takes: str = "give a number of seconds") -> float:
    """Return a number of seconds. The number may be negative, such as the time left until a past deadline.

    Raises:
        TypeError: The value is not a number.
        ValueError: The number is not finite, or its absolute value is above MOST_SECONDS.
    """
    if isinstance(value, bool) or not isinstance(value, int | Real):
        raise TypeError(f"{name}={brief(value)}: {takes}")
    number = value if isinstance(value, int) else float(value)  # locks accept only int and float
    if not abs(number) <= MOST_SECONDS:
        raise ValueError(f"{name}={brief(value)}: {takes}; at most {MOST_SECONDS:,} s")
    return number


def seconds_or_none(name: str, value: object) -> float | None:
    """Do as `seconds`, but return None for None."""
    return None if value is None else seconds(name, value, takes="give a number of seconds, or None for no limit")


def time_limit(name: str, value: object) -> float | None:
    """Return a number of seconds above 0, or None.

    Raises:
        TypeError: The value is not a number.
        ValueError: The number is not finite, not above 0, or above MOST_SECONDS.
    """
    if value is None:
        return None
    takes = "give a positive number of seconds, or None"
    number = seconds(name, value, takes=takes)
    if number <= 0:
        raise ValueError(f"{name}={brief(value)}: {takes}")
    return number


def patience(name: str, value: object) -> float:
    """Return a number of seconds, 0 or more; it may be infinite.

    Raises:
        TypeError: The value is not a number.
        ValueError: The number is below 0, NaN, or finite and above MOST_SECONDS.
    """
    takes = "give 0 or more seconds, or math.inf for no limit"
    if value == math.inf:
        return math.inf
    number = seconds(name, value, takes=takes)
    if number < 0:
        raise ValueError(f"{name}={brief(value)}: {takes}")
    return number


def flag(name: str, value: object) -> bool:
    """Return True or False; also accept NumPy's booleans.

    Raises:
        TypeError: The value is not a boolean.
    """
    if not _is_bool(value):
        raise TypeError(f"{name}={brief(value)}: give True or False")
    return bool(value)


def flag_or_none(name: str, value: object) -> bool | None:
    """Do as `flag`, but return None for None."""
    if value is not None and not _is_bool(value):
        raise TypeError(f"{name}={brief(value)}: give True, False or None")
    return None if value is None else bool(value)


def _is_bool(value: object) -> bool:
    kind = type(value)
    return kind is bool or (kind.__module__ == "numpy" and kind.__name__ in {"bool", "bool_"})


def address(name: str, value: object) -> str | None:
    """Return an address or a token as text, or None.

    Raises:
        TypeError: The value is not text. The error does not show a value that may be a token.
        ConfigurationError: The text is empty. Without this error, a program that did not find its endpoint or token
            would use another master, or a pool on this machine.
    """
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"{name}= is of type {type(value).__name__}: {_text_instead(name, value)}")
    if not value:
        raise ConfigurationError(
            f"{name}= is given an empty text: give the {name}, or None, so that the environment or the profile file "
            "names the master; without these the pool is one on this machine"
        )
    return value


def _text_instead(name: str, value: object) -> str:
    """Say what to give instead of a value that is not text.

    A whole number probably means a number of executors, as in `multiprocessing.Pool(4)`.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= EXECUTORS:
        return "give text, or None"
    if name == "token":  # errors never show tokens
        return "give text, or None; workers= takes a number of executors"
    return f"{value} is no endpoint: for a pool with this many executors write Pool(workers={value})"


def check_iterables(call: str, values: Iterable[object]) -> None:
    """Refuse arguments of a map that are not iterable, without reading an iterable or making an iterator.

    Raises:
        TypeError: An argument is not iterable; the text names it.
    """
    for number, each in enumerate(values, 1):
        kind = type(each)
        has_elements = kind.__module__ != "numpy" or getattr(each, "shape", None) != ()
        if not has_elements or not (hasattr(kind, "__iter__") or hasattr(kind, "__getitem__")):
            raise TypeError(
                f"{call}() takes iterables after the function, and number {number} of them, {brief(each)}, is a "
                f"{kind.__name__}: give a list, a range or another iterable of what the tasks are called with"
            )
