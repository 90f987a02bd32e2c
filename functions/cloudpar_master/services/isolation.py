from collections.abc import Callable, Iterable
from typing import TypeVar

from cloudpar_protocol.errors import RequestError

T = TypeVar("T")


def each(items: Iterable[T], act: Callable[[T], object]) -> None:
    """Act on each item. If this is refused for some of them, still do it for all others.

    Without this, one package that is busy, or that a newer release has written, would hold up the other packages of a
    request for as long as it is. The caller's repetition of the request does no harm.

    Raises:
        RequestError: The first refusal.
    """
    refusals: list[RequestError] = []
    for item in items:
        try:
            act(item)
        except RequestError as refusal:
            refusals.append(refusal)
    if refusals:
        raise refusals[0]
