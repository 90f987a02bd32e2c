"""Refuses to pickle open files, which `cloudpickle` would send as copies of their text.

A copy would look like the file, but be independent of it. Each task would read from the start. If an executor unpickled
the copy once for many tasks, only the first of these tasks would read anything. Files are refused in task code, in task
data and in results. Streams in memory (`io.StringIO`, `io.BytesIO`) are data, and travel as copies.
"""

import io
import sys
from typing import Any

_BY_NAME = ("stdout", "stderr")
"""Streams of `sys` that are pickled by name, because every process has them and tasks may print to them."""


def reduce(thing: Any) -> tuple[Any, ...] | None:
    """Return a value that says how to pickle `sys.stdout` or `sys.stderr`, like `__reduce__`.

    Returns None for all other objects that this function does not refuse. Binary files are among these, because pickle
    itself refuses them.

    Args:
        thing: Any object.

    Raises:
        TypeError: The object is a text file or a `SpooledTemporaryFile`, open or closed.
    """
    for name in _BY_NAME:
        if thing is getattr(sys, name, None) and thing is not None:
            return getattr, (sys, name)
    if isinstance(thing, io.TextIOWrapper) or _is_spooled(type(thing)):
        kind = type(thing)
        raise TypeError(f"cannot pickle '{kind.__module__}.{kind.__qualname__}' object")
    return None


def _is_spooled(kind: type) -> bool:
    """Whether a class is a temporary file that starts in memory. Checked by name, so that nothing is imported."""
    return kind.__module__ == "tempfile" and kind.__qualname__ == "SpooledTemporaryFile"
