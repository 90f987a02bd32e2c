"""Runs one task at the worker: runs the body, finds its writes, undoes them, and returns them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .looks import watch
from .references import pickling, references
from .writes import encoding

if TYPE_CHECKING:
    from collections.abc import Callable

    from .containers import Finding, Look
    from .writes import Encode


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
    return _Task(body, encode, looks, prepares)


class _Task:
    """Runs the body with one index, and returns its writes; None if there are none."""

    def __init__(
        self,
        body: Callable[[int], object],
        encode: Encode,
        looks: list[tuple[int, Look]],
        prepares: list[Callable[[], None]],
    ) -> None:
        self._body = body
        self._encode = encode
        self._looks = looks
        self._prepares = prepares
        self._broken: bytes | None = None

    def __call__(self, index: int) -> bytes | None:
        if self._broken is not None:
            return self._broken
        for prepare in self._prepares:
            prepare()
        try:
            self._body(index)
        except BaseException:
            self._settle(report=False)
            raise
        return self._settle(report=True)

    def _settle(self, *, report: bool) -> bytes | None:
        # Check all objects before undoing anything. Arrays may share memory, and a new value may contain an old one, so
        # undoing one write could hide or change another write.
        found = [(number, finding) for number, look in self._looks if (finding := look()) is not None]
        try:
            return self._encode(found) if report and found else None
        finally:
            for number, finding in found:
                self._take_back(number, finding)

    def _take_back(self, number: int, finding: Finding) -> None:
        undo = finding[3]
        if undo is not None:
            undo()
        elif self._broken is None:
            # Later tasks would see a change that cannot be undone. So in this executor later tasks only return the
            # error about it.
            self._broken = self._encode([(number, finding)])
