"""Checks of what users give to the pool: an error names the argument, what was given, and what the argument takes.

Numbers of any library become Python's own. True and False are no numbers: `workers=True` is a mistake.
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
"""The longest time that an argument takes, in seconds (32 years): locks and messages hold no longer ones."""


def whole(name: str, value: object, *, takes: str = "give a whole number") -> int:
    """A whole number.

    Args:
        name: The argument.
        value: What the caller gave for it.
        takes: What the argument takes, for the error.

    Raises:
        TypeError: It is something else.
        ValueError: It does not fit in 64 bits.
    """
    try:
        number = operator.index(value)  # type: ignore[arg-type]  # this is the check
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(f"{name}={brief(value)}: {takes}")
    if abs(number) > sys.maxsize:
        raise ValueError(f"{name}={brief(value)}: {takes}, of at most 64 bits")
    return number


def whole_or_none(name: str, value: object) -> int | None:
    """See `whole`; None is a value, too."""
    return None if value is None else whole(name, value, takes="give a whole number, or None")


def seconds(name: str, value: object, *, takes: str = "give a number of seconds") -> float:
    """A number of seconds; a negative one, too, such as the time that is left until a deadline in the past.

    Raises:
        TypeError: It is no number.
        ValueError: It is no finite number, or over MOST_SECONDS.
    """
    if isinstance(value, bool) or not isinstance(value, int | Real):
        raise TypeError(f"{name}={brief(value)}: {takes}")
    number = value if isinstance(value, int) else float(value)  # locks take no others
    if not abs(number) <= MOST_SECONDS:
        raise ValueError(f"{name}={brief(value)}: {takes}; at most {MOST_SECONDS:,} s")
    return number


def seconds_or_none(name: str, value: object) -> float | None:
    """See `seconds`; None is a value, too."""
    return None if value is None else seconds(name, value, takes="give a number of seconds, or None for no limit")


def time_limit(name: str, value: object) -> float | None:
    """A number of seconds above 0, or None.

    Raises:
        TypeError: It is no number.
        ValueError: It is no finite number, not above 0, or over MOST_SECONDS.
    """
    if value is None:
        return None
    takes = "give a positive number of seconds, or None"
    number = seconds(name, value, takes=takes)
    if number <= 0:
        raise ValueError(f"{name}={brief(value)}: {takes}")
    return number


def patience(name: str, value: object) -> float:
    """0 or more seconds; infinity, too.

    Raises:
        TypeError: It is no number.
        ValueError: It is less than 0, or NaN.
    """
    takes = "give 0 or more seconds, or math.inf for no limit"
    if value == math.inf:
        return math.inf
    number = seconds(name, value, takes=takes)
    if number < 0:
        raise ValueError(f"{name}={brief(value)}: {takes}")
    return number


def flag(name: str, value: object) -> bool:
    """True or False, of any library.

    Raises:
        TypeError: It is something else.
    """
    if not _is_bool(value):
        raise TypeError(f"{name}={brief(value)}: give True or False")
    return bool(value)


def flag_or_none(name: str, value: object) -> bool | None:
    """See `flag`; None is a value, too."""
    if value is not None and not _is_bool(value):
        raise TypeError(f"{name}={brief(value)}: give True, False or None")
    return None if value is None else bool(value)


def _is_bool(value: object) -> bool:
    kind = type(value)
    return kind is bool or (kind.__module__ == "numpy" and kind.__name__ in {"bool", "bool_"})


def address(name: str, value: object) -> str | None:
    """A text that says where the master is or who the caller is, or None.

    Raises:
        TypeError: It is no text. The error does not show it, since it may be a token.
        ConfigurationError: It is empty: a program that does not find its setting would start a pool on this machine.
    """
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"{name}= is given a {type(value).__name__}: {_text_instead(name, value)}")
    if not value:
        raise ConfigurationError(
            f"{name}= is given an empty text: give the {name}, or None, so that the environment or the profile file "
            "names the master; without these the pool is one on this machine"
        )
    return value


def _text_instead(name: str, value: object) -> str:
    """What to give: a caller who knows `multiprocessing.Pool(4)` means a number of executors."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= EXECUTORS:
        return "give text, or None"
    if name == "token":  # which no error shows
        return "give text, or None; workers= takes a number of executors"
    return f"{value} is no endpoint: for a pool of so many executors write Pool(workers={value})"


def check_iterables(call: str, values: Iterable[object]) -> None:
    """Refuse values of a map that cannot be iterated over; nothing is consumed, and no iterator is made.

    Raises:
        TypeError: One of them is no iterable; the text says which.
    """
    for number, each in enumerate(values, 1):
        kind = type(each)
        has_elements = kind.__module__ != "numpy" or getattr(each, "shape", None) != ()
        if not has_elements or not (hasattr(kind, "__iter__") or hasattr(kind, "__getitem__")):
            raise TypeError(
                f"{call}() takes iterables after the function, and number {number} of them, {brief(each)}, is a "
                f"{kind.__name__}: give a list, a range or another iterable of what the tasks are called with"
            )
