"""One task at the worker: run the body, find what it changed, take it back, and return the writes."""

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
    """Returns the function that runs one task; called once when an executor loads the task code.

    Args:
        body: What a task runs.
        kinds: How each of `objects` is watched.
        objects: What `body` captured; the same objects, since all came in one pickle.
        fixed: Numbers of the arrays that are read-only at the client, which pickling forgets.
    """
    for number in fixed:
        objects[number].flags.writeable = False
    refer = references(kinds, objects)
    dump = pickling(refer)
    encode = encoding(kinds, refer, dump)
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
        # All looks come first: arrays that share memory see each other taken back, and new values may hold old ones.
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
            # What cannot be taken back would be seen by the next task: it gets the same answer instead.
            broken.append(encode([(number, finding)]))

    return task
