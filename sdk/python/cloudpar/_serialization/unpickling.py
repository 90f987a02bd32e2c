"""Unpickling of results, which leaves the classes of this process as they are.

A result whose class `__main__` defines brings that class along. cloudpickle finds the class that is here, and then sets
all of its attributes to the copies that came: its methods would see the globals of the task from then on, and class
attributes and caches that have changed here would be lost.
"""

import io
import pickle
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from cloudpickle import cloudpickle

_MARK = b"_class_setstate"
"""In each pickle that brings a class. Others need no look at what they name."""

_SEARCHED_BYTES = 1 << 16
"""In larger pickles the mark is not searched for: looking at the few names in them costs less."""

_filling: WeakSet[type] = WeakSet()
"""Classes that a pickle has brought and that have no attributes yet."""


def loads(data: bytes) -> Any:
    """Unpickle a value; classes that are here already keep their attributes."""
    if len(data) <= _SEARCHED_BYTES and _MARK not in data:
        return pickle.loads(data)
    return _Unpickler(io.BytesIO(data)).load()


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """What a pickle names; see `pickle.Unpickler`."""
        found = super().find_class(module, name)
        if found is pickle.loads:  # an exception's pickle may have another one in it
            return loads
        return _INSTEAD.get(name, found) if module == cloudpickle.__name__ else found


def _made_by(make: Callable[..., type]) -> Callable[..., type]:
    def skeleton(*arguments: Any) -> type:
        *_, tracker_id, _ = arguments
        is_here = tracker_id in cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID  # noqa: SLF001 - it has no other name
        made = make(*arguments)
        if not is_here:
            _filling.add(made)
        return made

    return skeleton


def _set_state(kind: type, state: Any) -> type:
    if kind in _filling:
        cloudpickle._class_setstate(kind, state)  # noqa: SLF001 - it has no other name
        _filling.discard(kind)
    return kind


_INSTEAD = {
    "_class_setstate": _set_state,
    "_make_skeleton_class": _made_by(cloudpickle._make_skeleton_class),  # noqa: SLF001 - it has no other name
    "_make_skeleton_enum": _made_by(cloudpickle._make_skeleton_enum),  # noqa: SLF001 - it has no other name
}
