"""Finds captured arrays that must be sent as one block of memory, such as views with their bases."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, Any

from .remote.arrays import address, coordinates, memory, span

if TYPE_CHECKING:
    from collections.abc import Callable

_PAIRWISE = 32
_SHARING_WORK = 10_000
_ALIGNMENT_BYTES = 16
_FREE = -(2**63)


@dataclass(frozen=True, slots=True)
class Region:
    """Memory that several arrays share, or the memory of one array that NumPy's pickling may change.

    Attributes:
        members: The arrays in this memory, by their numbers (see `Capture.facets`).
        low: The address of the first byte.
        high: The address after the last byte.
    """

    members: dict[int, Any]
    low: int
    high: int

    def rebuilders(self) -> dict[int, tuple[Any, ...]]:
        """Return, by each member's `id()`, the tuple from which pickle rebuilds it over one copy of the memory."""
        import numpy as np

        pad = self.low % _ALIGNMENT_BYTES
        root = np.zeros(pad + self.high - self.low, np.uint8)
        root[pad:] = memory(self.members, self.low, (self.high - self.low,), (1,), root.dtype)
        return {
            id(array): (
                np.ndarray,
                (array.shape, array.dtype, root, pad + address(array) - self.low, array.strides),
            )
            for array in self.members.values()
        }

    def slots(self) -> tuple[int, dict[int, Callable[[Any], Any]]]:
        """Return the number of slots and, by the number of each array, a function that maps positions to slots.

        A slot is a piece of memory that each element of a member contains either as a whole or not at all. Slots are as
        large as possible.
        """
        grain = 0
        for array in self.members.values():
            strides = (stride for stride, length in zip(array.strides, array.shape, strict=True) if length > 1)
            grain = gcd(grain, array.dtype.itemsize, address(array) - self.low, *strides)

        def slots_of(array: Any) -> Callable[[Any], Any]:
            import numpy as np

            first = (address(array) - self.low) // grain
            wide = np.arange(array.dtype.itemsize // grain)

            def of(positions: Any) -> Any:
                start = np.full(len(positions), first)
                for places, stride in zip(coordinates(positions, array.shape), array.strides, strict=True):
                    start += places * (stride // grain)
                return start[:, np.newaxis] + wide

            return of

        return (self.high - self.low) // grain, {number: slots_of(array) for number, array in self.members.items()}


def shared(arrays: dict[int, Any]) -> list[Region]:
    """Return the memory regions of all arrays that overlap another one, or that NumPy's pickling may change."""
    spans = sorted((*span(array), number) for number, array in arrays.items() if array.nbytes)
    clusters: list[list[int]] = []
    reached = 0
    for low, high, number in spans:
        if low >= reached:
            clusters.append([])
        clusters[-1].append(number)
        reached = max(reached, high)
    groups = [group for cluster in clusters for group in _split([(n, arrays[n]) for n in cluster])]
    return [
        Region(group, min(span(array)[0] for array in group.values()), max(span(array)[1] for array in group.values()))
        for group in groups
        if len(group) > 1 or any(map(_arrives_otherwise, group.values()))
    ]


def _arrives_otherwise(array: Any) -> bool:
    """Return whether an array's elements overlap, or NumPy's own pickling may change their byte order."""
    low, high = span(array)
    # NumPy's pickling converts some arrays in foreign byte order to the machine's byte order: arrays of times, and
    # arrays that are not contiguous.
    return bool(array.nbytes > high - low or not array.dtype.isnative)


def _split(cluster: list[tuple[int, Any]]) -> list[dict[int, Any]]:
    """Split arrays with overlapping address ranges into groups of arrays that share bytes.

    Arrays with overlapping ranges need not share bytes, for example two columns of a matrix.
    """
    if len(cluster) > _PAIRWISE:
        # Comparing every pair takes quadratic time. A single group is also correct, but may send more memory.
        return [dict(cluster)]
    groups: list[dict[int, Any]] = []
    for number, array in cluster:
        touching = [group for group in groups if any(_share(array, other) for other in group.values())]
        groups = [group for group in groups if group not in touching]
        merged = {number: array}
        for group in touching:
            merged |= group
        groups.append(merged)
    return groups


def _share(left: Any, right: Any) -> bool:
    import numpy as np

    try:
        return np.shares_memory(left, right, max_work=_SHARING_WORK)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


class Claims:
    """Records the task that wrote each slot of a piece of memory.

    Example:
        >>> import numpy
        >>> claims = Claims(4)
        >>> claims.take(numpy.array([[0], [1]]), 7), claims.take(numpy.array([[2], [1]]), 8)
        (None, (1, 7))
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._owners: Any = None

    def take(self, slots: Any, index: int) -> tuple[int, int] | None:
        """Claim slots for a task. If another task has claimed one of these slots, claim none.

        Each row of `slots` contains the slots of one element.

        Returns:
            The number of the first row with a slot of another task, and that task; None if there is no such row.
        """
        import numpy as np

        if self._owners is None:
            self._owners = np.full(self._slots, _FREE, np.int64)
        held = self._owners[slots]
        taken = np.argwhere((held != _FREE) & (held != index))
        if len(taken):
            row = int(taken[0][0])
            return row, int(held[tuple(taken[0])])
        self._owners[slots] = index
        return None
