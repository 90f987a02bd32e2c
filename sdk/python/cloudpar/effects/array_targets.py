"""Gathers the writes to arrays.

It finds conflicts by memory address, so it also finds conflicts between an array and its views.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .regions import Claims
from .remote.arrays import coordinates, layout, words
from .targets import Target
from .trails import Coordinates, Trail

if TYPE_CHECKING:
    from collections.abc import Callable

    from .graph import Facet
    from .regions import Region

    Claim = Callable[[Any, int], tuple[int, int] | None]


def array_targets(facets: tuple[Facet, ...], regions: tuple[Region, ...]) -> dict[int, Target]:
    """Return the targets that gather the writes to arrays, by the arrays' numbers."""
    claims = {number: claim for region in regions for number, claim in _claims(region).items()}
    return {
        number: _ArrayTarget(facet.thing, facet.trail, claims.get(number))
        for number, facet in enumerate(facets)
        if facet.kind == "array"
    }


def _claims(region: Region) -> dict[int, Claim]:
    """Return, by the number of each array of a region, a function that claims the memory of elements for a task."""
    count, slots_of = region.slots()
    owners = Claims(count)

    def claim(to_slots: Callable[[Any], Any]) -> Claim:
        return lambda positions, index: owners.take(to_slots(positions), index)

    return {number: claim(to_slots) for number, to_slots in slots_of.items()}


class _ArrayTarget(Target):
    """The writes to one array. `claim` claims memory of the array's region; it is None if the array is in no region."""

    def __init__(self, thing: Any, trail: Trail, claim: Claim | None) -> None:
        super().__init__(thing, trail)
        self._layout = layout(thing)
        alone = Claims(thing.size)
        self._claim = claim or (lambda positions, index: alone.take(positions[:, None], index))
        self._writes: dict[int, tuple[Any, Any]] = {}
        self._before: list[tuple[Any, Any]] = []

    def gather(self, index: int, keys: Any, values: Any) -> tuple[Trail, int] | None:
        import numpy as np

        self.task = index
        positions = np.arange(keys[0], sum(keys)) if isinstance(keys, tuple) else np.frombuffer(keys, "<i8")
        taken = self._claim(positions, index)
        if taken is not None:
            place = coordinates(int(positions[taken[0]]), self.thing.shape)
            return self.trail.item(Coordinates(map(int, place))), taken[1]
        self._writes[index] = (positions, values)
        return None

    def check(self) -> None:
        if layout(self.thing) != self._layout or not self.thing.flags.writeable:
            raise self.moved()

    def apply(self) -> None:
        for positions, values in self._writes.values():
            places = coordinates(positions, self.thing.shape) or ...
            memory = self._memory()
            before = memory[places].copy()
            self._before.append((places, before))
            memory[places] = _read(values, before)

    def take_back(self) -> None:
        for places, before in reversed(self._before):
            self._memory()[places] = before

    def _memory(self) -> Any:
        return self.thing if self.thing.dtype.hasobject else words(self.thing)


def _read(values: Any, like: Any) -> Any:
    """Return a task's elements in the shape of the elements that they replace."""
    import numpy as np

    if isinstance(values, bytes):
        return np.frombuffer(values, like.dtype).reshape(like.shape)
    # Elements are assigned one by one, because NumPy would unpack an element that is itself a sequence.
    objects = np.empty(len(values), object)
    for position, value in enumerate(values):
        objects[position] = value
    return objects.reshape(like.shape)
