"""Gathers the writes of all tasks in any order, and applies them together."""

from __future__ import annotations

import io
import pickle
from typing import TYPE_CHECKING, Any

from cloudpar.errors import SideEffectError

from .array_targets import array_targets
from .errors import write_error
from .keyed_targets import keyed_targets
from .remote.arrays import address, memory

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .graph import Facet
    from .regions import Region
    from .targets import Target


class Merge:
    """Gathers the writes of one body's tasks, and copies back all of them or none.

    If the writes of a task are added a second time, nothing changes. So results that arrive twice do no harm.
    """

    def __init__(self, facets: Iterable[Facet], regions: Iterable[Region]) -> None:
        self._facets = tuple(facets)
        self._targets = keyed_targets(self._facets) | array_targets(self._facets, tuple(regions))
        self._closed = False

    def add(self, index: int, writes: bytes | None) -> None:
        """Add the writes of one task, as the task code returned them.

        Raises:
            SideEffectError: The task made a write that cannot be copied back, or wrote an element that another task has
                written.
            ValueError: The merge is closed: `commit` was called, or an earlier `add` raised an error.
            Exception: A class of the user raised an exception while a written value was unpickled.

        All these exceptions except ValueError close the merge. The caller's objects stay unchanged.
        """
        if self._closed:
            raise ValueError("this merge was committed, or has failed")
        if writes is None:
            return
        self._closed = True
        name, *report = self._read(index, writes)
        if name:
            raise self._write_error(index, name, *report)
        for number, keys, values in report[0]:
            conflict = self._targets[number].gather(index, keys, values)
            if conflict is not None:
                variable, other = conflict
                raise write_error("conflict", str(variable), *sorted((other, index)))
        self._closed = False

    def commit(self) -> None:
        """Apply all writes to the caller's objects, and close the merge. If one write fails, all of them are undone.

        Raises:
            SideEffectError: The caller has changed an object meanwhile, so that the writes no longer fit the object.
            ValueError: The merge is closed: `commit` was called before, or `add` raised an error.
        """
        if self._closed:
            raise ValueError("this merge was committed, or has failed")
        self._closed = True
        written = [target for target in self._targets.values() if target.task is not None]
        for target in written:
            target.check()
        done: list[Target] = []
        try:
            for target in written:
                done.append(target)
                target.apply()
        except BaseException:
            # Ctrl-C can arrive between any two writes. If the earlier writes were not undone, the caller's objects
            # would contain the writes of some tasks only.
            for target in reversed(done):
                target.take_back()
            raise

    def _read(self, index: int, writes: bytes) -> Any:
        reader = _Reader(writes, self._facets, index)
        try:
            return reader.load()
        except SideEffectError:
            raise
        except Exception as error:  # a value's own unpickling may raise anything
            reason = f"{type(error).__name__}: {error}"
            if reader.number is None:
                raise write_error("unreadable", "an element", index, reason=reason) from error
            raise self._write_error(index, "unreadable", reader.number, "", reason) from error

    def _write_error(self, index: int, name: str, number: int, suffix: str, reason: str) -> Exception:
        facet = self._facets[number]
        if facet.kind == "function":
            return write_error(name, suffix, index, reason=reason)
        joint = "." if facet.kind in {"class", "module"} else ""
        return write_error(name, f"{facet.trail}{joint}{suffix}", index, reason=reason)


class _Reader(pickle.Unpickler):
    """Reads a task's writes. References in them become the caller's own objects.

    `number` is the number of the object to which the current value was written; None if it is not known.
    """

    def __init__(self, writes: bytes, facets: tuple[Facet, ...], index: int) -> None:
        super().__init__(io.BytesIO(writes))
        self._facets = facets
        self._index = index
        self._views: dict[int, Any] = {}
        self.number: int | None = None

    def persistent_load(self, reference: Any) -> Any:
        if isinstance(reference, int):
            return self._facets[reference].thing
        if len(reference) == 1:
            (self.number,) = reference
            return self.number
        number, there, offset, shape, strides, dtype, same = reference
        if same not in self._views:
            array = self._facets[number].thing
            if array.strides != there:
                raise write_error("view", str(self._facets[number].trail), self._index)
            self._views[same] = memory(array, address(array) + offset, shape, strides, dtype)
            if not array.flags.writeable:
                self._views[same].flags.writeable = False
        return self._views[same]
