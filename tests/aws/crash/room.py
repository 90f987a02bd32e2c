from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

FRAMES = 9_000
"""How many values the wide frame holds: 8 bytes each, more than the frames of all calls below it need."""

_scope: dict[str, Callable[[Callable[[], object]], object]] = {}
exec(f"def wide(call):\n    return call()\n    {' = '.join(f'a{n}' for n in range(FRAMES))} = None", _scope)


def with_room(call: Callable[[], T]) -> T:
    """Call it with one piece of memory for all of its frames.

    CPython allocates frames in pieces of 16 KiB, and frees a piece as soon as no frame is in it. If a call that is
    repeated often crosses the border between two pieces, each crossing costs two system calls, half of the time here.
    Below a frame that is larger than a piece, all frames share one large piece.

    >>> with_room(lambda: 1 + 1)
    2
    """
    return _scope["wide"](call)  # type: ignore[return-value]
