"""Serializes the classes and functions that arguments of submitted tasks refer to, once for many tasks."""

import threading
from collections import OrderedDict
from typing import NamedTuple

from .footprint import Footprint, footprint
from .pickling import DataNeeds, Part

REMEMBERED, REMEMBERED_BYTES = 128, 1 << 20
"""How many classes and functions are remembered, and the size of the largest pickle that is remembered, in bytes."""


class _Known(NamedTuple):
    """The footprint of a class or function, and its `Part`, which is None until a second call refers to the object."""

    footprint: Footprint
    part: Part | None


class PartCache:
    """Keeps pickles of classes and functions to which the arguments of submitted tasks refer. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[int, _Known] = OrderedDict()

    def get(self, thing: object) -> Part | None:
        """Return the current part of a class or function; None if it is pickled with the arguments.

        Many classes and functions are used only once. So a class or function is pickled with the arguments in the first
        call that refers to it, and in the first call after a change of it. It is also pickled with the arguments if it
        may change in a way that its footprint does not show, or if its pickle is too large.
        """
        with self._lock:
            known = self._known.get(id(thing))
            met = known is not None and known.footprint.holds()
            if known is not None and met and known.part is not None:
                self._known.move_to_end(id(thing))
                return known.part
        made_of = footprint(thing)
        if made_of is None:
            return None
        part = Part.of(thing) if met else None
        if part is not None and len(part.data) > REMEMBERED_BYTES:
            return None
        with self._lock:
            self._known[id(thing)] = _Known(made_of, part)
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return part


class CallNeeds(DataNeeds):
    """The modules, classes and functions that the arguments of one submitted task need."""

    def __init__(self, cache: PartCache) -> None:
        super().__init__()
        self._cache = cache

    def part(self, thing: object) -> Part | None:
        """See `DataNeeds.part`."""
        return self._cache.get(thing)
