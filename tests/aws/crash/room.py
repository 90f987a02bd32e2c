from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

FRAMES = 9_000
"""So many values; with 8 bytes each, more than the frames of any call below take."""

_scope: dict[str, Callable[[Callable[[], object]], object]] = {}
exec(f"def wide(call):\n    return call()\n    {' = '.join(f'a{n}' for n in range(FRAMES))} = None", _scope)


def with_room(call: Callable[[], T]) -> T:
    """Call it with one piece of memory for all of its frames.

    CPython has frames in pieces of 16 KiB, and frees each as soon as no frame is in it. Where a call that is made
    again and again crosses the border of two, each time costs two calls of the kernel: here, half of the time. Below a
    frame that is larger than a piece, there is a large one.

    >>> with_room(lambda: 1 + 1)
    2
    """
    return _scope["wide"](call)  # type: ignore[return-value]
