"""The error for a write that cannot be copied back."""

from __future__ import annotations

from cloudpar.errors import SideEffectError

_VALUE = "return the value and use map, or write it into an element of a list that the caller made"
_ELEMENTS = "make it long enough before the call and write its elements, or return the values and use map"

# A key names a problem that a worker or the client has found with a write. Its value says what happened and what to do.
PROBLEMS = {
    "resized": ("changed its length (append, insert, del, clear)", _ELEMENTS),
    "deleted": ("had elements deleted or moved", "write a marker such as None instead, and delete after the call"),
    "set": ("is a set and was changed", "write into a dict (`d[key] = True`), or return the values and use map"),
    "opaque": ("was changed, and its changes cannot be copied back", _VALUE),
    "global": ("is a global and was bound to another value", _VALUE),
    "nonlocal": ("is a nonlocal and was bound to another value", _VALUE),
    "module": ("is a name of a module and was bound to another value", _VALUE),
    "class": ("is an attribute of a class and was bound to another value", _VALUE),
    "defaults": ("had its default arguments replaced", _VALUE),
    "layout": ("was resized, or its shape, dtype or flags were changed", "make a new array instead"),
    "unpicklable": ("was given a value that cannot be pickled", "write plain data"),
    "view": ("was given a view of a captured array whose memory is not contiguous", "write a copy of the view"),
    "unreadable": ("was given a value that cannot be read here", "write plain data"),
    "moved": ("was changed by the caller while tasks wrote to it", "leave it alone until the call returns"),
    "conflict": ("was written by two tasks", "give each task elements of its own"),
}


def write_error(name: str, variable: str, *indexes: int, reason: str = "") -> SideEffectError:
    """Return the error for a key of `PROBLEMS`.

    Args:
        name: The key.
        variable: The variable that was written, as the body's source names it.
        indexes: The indexes of the tasks that wrote the variable.
        reason: The text of an exception that explains more; "" if there is no exception.

    Example:
        >>> print(write_error("conflict", "result[3]", 1, 7))
        tasks 1 and 7: `result[3]` was written by two tasks; give each task elements of its own
    """
    what, fix = PROBLEMS[name]
    tasks = f"task {indexes[0]}" if len(indexes) == 1 else "tasks " + " and ".join(map(str, indexes))
    cause = f" ({reason})" if reason else ""
    return SideEffectError(f"{tasks}: `{variable}` {what}{cause}; {fix}", variable=variable, index=indexes[-1])
