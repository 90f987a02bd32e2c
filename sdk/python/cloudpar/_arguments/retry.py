"""How often a task that raises is retried, and after which exceptions."""

from dataclasses import dataclass
from typing import TypeAlias

from cloudpar_protocol import errors as protocol_errors
from cloudpar_protocol.brief import brief

from .argument_types import whole

RetryOn: TypeAlias = "type[Exception] | tuple[type[Exception], ...]"

MOST, MOST_KINDS = 100, 20


@dataclass(frozen=True)
class Retry:
    """Retry up to `retries` times after exceptions of the classes in `names`.

    If `names` is empty, retry after any Exception.
    """

    retries: int = 0
    names: tuple[str, ...] = ()


ONCE = Retry()


def read_retry(retries: int, retry_on: RetryOn) -> Retry:
    """Check the arguments `retries=` and `retry_on=`, and return them as one record.

    Raises:
        ValueError: `retries` is not from 0 to MOST, or `retry_on` has more than MOST_KINDS classes.
        TypeError: `retries` is not a whole number, or `retry_on` is neither a class derived from Exception nor a
            tuple of one or more such classes.
    """
    kinds = retry_on if isinstance(retry_on, tuple) else (retry_on,)
    retries = whole("retries", retries, takes=f"give a whole number from 0 to {MOST}")
    if not 0 <= retries <= MOST:
        raise ValueError(f"retries={retries}: give a number from 0 to {MOST}")
    if not kinds or not all(map(_is_exception, kinds)):
        raise TypeError(f"retry_on={brief(retry_on)}: give a class derived from Exception, or a tuple of them")
    if len(kinds) > MOST_KINDS:
        raise ValueError(f"retry_on: {len(kinds)} classes are too many, give a base class of them")
    return Retry(retries, () if Exception in kinds else tuple(map(_name, kinds)))


def _is_exception(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Exception)


def _name(kind: type[Exception]) -> str:
    """Return the name by which workers know a class.

    The name does not contain the function or class in which the class is defined, because a class that is pickled by
    value loses that part of its name.
    """
    # `cloudpar.errors` changes `__module__` of the protocol's classes, but workers know them by the original module.
    own = getattr(protocol_errors, kind.__name__, None) is kind
    module = protocol_errors.__name__ if own else kind.__module__
    return kind.__name__ if module == "builtins" else f"{module}.{kind.__name__}"
