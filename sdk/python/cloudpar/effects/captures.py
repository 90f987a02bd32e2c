"""What a body captured: the task code that carries it to the workers, and the caller's objects that wait here."""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cloudpar._serialization.carried import reduced
from cloudpar._serialization.pickling import Pickler

from . import remote
from .graph import Facet, Graph
from .merges import Merge
from .regions import Region, shared
from .remote.task import start

if TYPE_CHECKING:
    from collections.abc import Callable


class TaskCode:
    """The code of every task of one `parallel_for`: called with a task's index, it returns that task's writes.

    It pickles as bytes that need the standard library, cloudpickle and what the body itself imports, but no
    `cloudpar`. What arrives is to be kept and called for many tasks: loading it costs 1.2 ms beside the data.
    Called in this process, it runs on a copy as any executor would.

    Attributes:
        modules: Those that the body needs.
    """

    def __init__(self, payload: bytes, modules: frozenset[str] = frozenset()) -> None:
        self.modules = modules
        self._payload = payload
        self._task: Callable[[int], bytes | None] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return pickle.loads, (self._payload,)

    def __call__(self, index: int) -> bytes | None:
        """Runs one task; returns its writes, or None when there are none."""
        if self._task is None:
            self._task = pickle.loads(self._payload)
        return self._task(index)


@dataclass(frozen=True, slots=True)
class Capture:
    """One body, ready to travel.

    Attributes:
        code: What runs at the workers.
        facets: What tasks can change, numbered by position.
        regions: The arrays among them that travel as memory, since they share it.
    """

    code: TaskCode
    facets: tuple[Facet, ...]
    regions: tuple[Region, ...]

    def merge(self) -> Merge:
        """Returns what gathers the writes of this body's tasks."""
        return Merge(self.facets, self.regions)


def capture(body: Callable[[int], object]) -> Capture:
    """Walks and pickles a body, as its captured objects are now.

    Args:
        body: Called with an index; what it returns is ignored. Functions and classes of `__main__`, nested ones, and
            those of modules registered with `cloudpickle.register_pickle_by_value` travel by value; register before.

    Returns:
        The task code for the workers, and the means to bring the writes home.

    Raises:
        TypeError or pickle.PicklingError: The body, or something it captured, cannot be pickled.

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
            # References cannot be rebuilt over bytes. Apart, the views could not see each other's writes.
            for number in region.members:
                facets[number] = replace(facets[number], kind="opaque")
        else:
            regions.append(region)
            rebuilders |= region.rebuilders()
    file = io.BytesIO()
    modules = set[str]()
    _Packer(file, modules, rebuilders).dump(_Start(body, facets))
    return Capture(TaskCode(file.getvalue(), frozenset(modules)), tuple(facets), tuple(regions))


class _Start:
    """Pickles as a call of `start`: everything in one pickle, so that what is watched is what the body holds."""

    def __init__(self, body: Callable[[int], object], facets: list[Facet]) -> None:
        fixed = [n for n, facet in enumerate(facets) if facet.kind == "array" and not facet.thing.flags.writeable]
        self._call = (body, [facet.kind for facet in facets], [facet.thing for facet in facets], fixed)

    def __reduce__(self) -> tuple[Any, ...]:
        return start, self._call


class _Packer(Pickler):
    """Pickles arrays that share memory so that they still share it at the worker."""

    def __init__(self, file: io.BytesIO, modules: set[str], rebuilders: dict[int, tuple[Any, ...]]) -> None:
        super().__init__(file, modules)
        self._rebuilders = rebuilders

    def reducer_override(self, thing: Any) -> Any:
        if thing is start:
            return reduced(start, remote)
        rebuilder = self._rebuilders.get(id(thing))
        return super().reducer_override(thing) if rebuilder is None else rebuilder
