"""Keeps one package or account that fails from holding up the others of a request."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from .steps import Steps

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def each(items: Iterable[T], act: Callable[[T], object]) -> Steps[None]:
    """Act on each item, in a step of its own, even if the action fails for some of them.

    Otherwise one package would hold up the other packages of a request, also each time that the request is repeated.
    Such a package may be busy, a newer release may have written its head, or its part of the storage may fail. After an
    error the caller repeats the whole request, which does no harm.

    Raises:
        Exception: The first error.
    """
    failures: list[Exception] = []
    for item in items:
        try:
            act(item)
        except Exception as error:  # noqa: BLE001 - any error of one item must not hold up the others
            failures.append(error)
        yield
    if failures:
        raise failures[0]


def gathered(keys: Iterable[K], get: Callable[[K], T]) -> tuple[dict[K, T], dict[K, Exception]]:
    """Get something for each key, once. Returns what was got, and the errors of the other keys, both by key."""
    found: dict[K, T] = {}
    failures: dict[K, Exception] = {}
    for key in dict.fromkeys(keys):
        try:
            found[key] = get(key)
        except Exception as error:  # noqa: BLE001 - any error of one key must not hold up the others
            failures[key] = error
    return found, failures
