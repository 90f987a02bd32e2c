"""How files travel that `cloudpickle` would send as copies of their text: not at all.

A copy would look like the file and be another one. Each task would read the text from the beginning or, if an executor
unpickled the copy once for many tasks, only the first of them would find anything. This holds for task code and data,
and for results back. Streams in memory (`io.StringIO`, `io.BytesIO`) are data, and travel as copies.
"""

import io
import sys
from typing import Any

_BY_NAME = ("stdout", "stderr")
"""Streams of `sys` that each process has, and that a task may print to. Standard input belongs to one process."""


def reduce(thing: Any) -> tuple[Any, ...] | None:
    """What pickle is to make of a thing, as `__reduce__` says it; None if it is no file.

    Args:
        thing: Anything.

    Raises:
        TypeError: It is a file, open or closed.
    """
    for name in _BY_NAME:
        if thing is getattr(sys, name, None) and thing is not None:
            return getattr, (sys, name)
    if isinstance(thing, io.TextIOWrapper) or _is_spooled(type(thing)):
        kind = type(thing)
        raise TypeError(f"cannot pickle '{kind.__module__}.{kind.__qualname__}' object")
    return None


def _is_spooled(kind: type) -> bool:
    """Whether a temporary file is in memory until it is large. It is found by name: most executors do not import it."""
    return kind.__module__ == "tempfile" and kind.__qualname__ == "SpooledTemporaryFile"
