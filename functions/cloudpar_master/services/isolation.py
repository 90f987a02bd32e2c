from collections.abc import Callable, Iterable
from typing import TypeVar

from cloudpar_protocol.errors import RequestError

T = TypeVar("T")


def each(items: Iterable[T], act: Callable[[T], object]) -> None:
    """Act on each item, even if the action is refused for some of them.

    Otherwise one package that is busy, or that a newer release has written, would hold up the other packages of a
    request. After an error the caller repeats the whole request, which does no harm.

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
