"""Arguments of the wrong type: errors that name the argument, not an operation inside the pool."""

import operator
from numbers import Real


def check_whole(**arguments: object) -> None:
    """Refuse what is neither a whole number nor None.

    Raises:
        TypeError: It is something else; the text names the argument.
    """
    for name, value in arguments.items():
        try:
            operator.index(0 if value is None else value)  # type: ignore[arg-type]
        except TypeError:
            raise TypeError(f"{name}={value!r}: give a whole number") from None


def check_seconds(**arguments: object) -> None:
    """Refuse what is neither a number nor None.

    Raises:
        TypeError: It is something else; the text names the argument.
    """
    for name, value in arguments.items():
        if value is not None and not isinstance(value, Real):
            raise TypeError(f"{name}={value!r}: give a number of seconds")
