"""Captures a body: makes the task code for the workers, and keeps the caller's objects."""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cloudpar._serialization.carried import PickledCall, reduced
from cloudpar._serialization.pickling import Pickler

from . import remote
from .graph import Facet, Graph
from .merges import Merge
from .regions import Region, shared
from .remote.task import start

if TYPE_CHECKING:
    from collections.abc import Callable


class LoopCode:
    """The code of all tasks of one `parallel_for`. Calling it with an index runs that task and returns its writes.

    Unpickling this code needs the standard library, cloudpickle and the body's own imports, but not `cloudpar`. An
    executor should keep the code for many tasks, because unpickling takes 1.2 ms, plus the time for the data. A call in
    this process runs the body on a copy of the captured objects, as in any executor.

    Attributes:
        modules: The modules that the body needs.
    """

    def __init__(self, payload: bytes, modules: frozenset[str] = frozenset()) -> None:
        self.modules = modules
        self._payload = payload
        self._task: Callable[[int], bytes | None] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return pickle.loads, (self._payload,)

    def __call__(self, index: int) -> bytes | None:
        """Run one task; return its writes, or None if there are none."""
        if self._task is None:
            self._task = pickle.loads(self._payload)
        return self._task(index)


@dataclass(frozen=True, slots=True)
class Capture:
    """A captured body: its task code, and what is needed to copy the tasks' writes back.

    Attributes:
        code: The task code for the workers.
        facets: The objects that tasks can change. The number of an object is its position in this tuple.
        regions: Captured arrays that are sent as blocks of memory, mostly because these arrays share memory.
    """

    code: LoopCode
    facets: tuple[Facet, ...]
    regions: tuple[Region, ...]

    def merge(self) -> Merge:
        """Return the object that gathers the writes of this body's tasks."""
        return Merge(self.facets, self.regions)


def capture(body: Callable[[int], object]) -> Capture:
    """Find everything that a body captures, and pickle it as it is now.

    Args:
        body: The function that is called with an index. Its return value is ignored. Functions and classes are pickled
            by value if they belong to `__main__`, are nested, or belong to modules that were registered before with
            `cloudpickle.register_pickle_by_value`.

    Returns:
        The task code for the workers, and what is needed to copy the writes back.

    Raises:
        Exception: The body, or something that it captures, cannot be pickled. The exception is mostly a TypeError or a
            pickle.PicklingError, but classes of the user may raise others.

    Example:
        >>> result = [None] * 3
        >>> def body(i):
        ...     result[i] = i * i
        >>> captured = capture(body)
        >>> merge = captured.merge()
        >>> for index in (2, 0, 1):
        ...     merge.add(index, captured.code(index))
        >>> merge.commit()
        >>> result
        [0, 1, 4]
    """
    facets = Graph(body).facets
    arrays = {number: facet.thing for number, facet in enumerate(facets) if facet.kind == "array"}
    regions = []
    rebuilders: dict[int, tuple[Any, ...]] = {}
    for region in shared(arrays):
        if any(array.dtype.hasobject for array in region.members.values()):
            # References to objects cannot be rebuilt over raw bytes, and separate copies would not share writes. So
            # tasks may only read such arrays: they become opaque objects, and any change of an opaque object raises an
            # error.
            for number in region.members:
                facets[number] = replace(facets[number], kind="opaque")
        else:
            regions.append(region)
            rebuilders |= region.rebuilders()
    file = io.BytesIO()
    modules = set[str]()
    kinds, things = [facet.kind for facet in facets], [facet.thing for facet in facets]
    fixed = [number for number, array in arrays.items() if not array.flags.writeable and kinds[number] == "array"]
    # A single pickle contains all of this, so that at the worker the watched objects are the same objects to which the
    # body refers.
    _Packer(file, modules, rebuilders).dump(PickledCall(start, body, kinds, things, fixed))
    return Capture(LoopCode(file.getvalue(), frozenset(modules)), tuple(facets), tuple(regions))


class _Packer(Pickler):
    """A pickler that keeps shared memory: arrays that share memory here also share memory at the worker."""

    def __init__(self, file: io.BytesIO, modules: set[str], rebuilders: dict[int, tuple[Any, ...]]) -> None:
        super().__init__(file, modules)
        self._rebuilders = rebuilders

    def reducer_override(self, thing: Any) -> Any:
        if thing is start:
            return reduced(start, remote)
        rebuilder = self._rebuilders.get(id(thing))
        return super().reducer_override(thing) if rebuilder is None else rebuilder
