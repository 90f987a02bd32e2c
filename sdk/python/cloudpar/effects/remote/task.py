"""Runs one task at the worker: runs the body, finds its writes, undoes them, and returns them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .looks import watch
from .references import pickling, references
from .writes import encoding

if TYPE_CHECKING:
    from collections.abc import Callable


def start(
    body: Callable[[int], object], kinds: list[str], objects: list[Any], fixed: list[int]
) -> Callable[[int], bytes | None]:
    """Return the function that runs one task. An executor calls `start` once, when it loads the task code.

    Args:
        body: The loop's body.
        kinds: The `Facet.kind` of each of `objects`, which says how the object is watched.
        objects: The objects that `body` captures. They are the same objects to which `body` refers here, since a single
            pickle contained all of them.
        fixed: The numbers of arrays that are read-only at the client. They are also made read-only here, because an
            unpickled array is writable.
    """
    for number in fixed:
        objects[number].flags.writeable = False
    refer = references(kinds, objects)
    dump, mark = pickling(refer)
    encode = encoding(kinds, refer, dump, mark)
    looks, prepares = watch(kinds, objects, dump)
    broken: list[bytes] = []

    def task(index: int) -> bytes | None:
        if broken:
            return broken[0]
        for prepare in prepares:
            prepare()
        try:
            body(index)
        except BaseException:
            settle(report=False)
            raise
        return settle(report=True)

    def settle(*, report: bool) -> bytes | None:
        # All objects are checked before anything is undone: arrays may share memory, and a new value may contain an old
        # one.
        found = [(number, finding) for number, look in looks if (finding := look()) is not None]
        try:
            return encode(found) if report and found else None
        finally:
            for number, finding in found:
                take_back(number, finding)

    def take_back(number: int, finding: Any) -> None:
        undo = finding[3]
        if undo is not None:
            undo()
        else:
            # Later tasks would see a change that cannot be undone. So in this executor later tasks only return the
            # error about it.
            broken.append(encode([(number, finding)]))

    return task
