"""Unpickles results without changing the classes of this process.

The pickle of a result whose class is defined in `__main__` contains a copy of this class. cloudpickle alone would find
this process's original class, and overwrite its attributes with those of the copy. The methods would then use the
task's globals, and changes of class attributes and caches in this process would be lost.
"""

import io
import pickle
from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakSet

from cloudpickle import cloudpickle

from cloudpar_protocol import large_buffers

_MARK = b"_class_setstate"
"""A text in each pickle that contains a class. Other pickles need no check of the names in them."""

_SEARCHED_BYTES = 1 << 16
"""Up to this size, in bytes, a pickle is searched for _MARK. In a larger pickle, checking all names costs less."""

_filling: WeakSet[type] = WeakSet()
"""Classes that a pickle has added to this process, and whose attributes are not set yet."""


def loads(data: bytes | bytearray) -> Any:
    """Unpickle a value; classes that this process already has keep their attributes.

    If `data` is a bytearray, an array that is most of the value uses its memory, so nothing else may use it.
    """
    if not isinstance(data, bytearray):
        return _loads(data)
    return large_buffers.loads(memoryview(data), load=_loads, least=len(data) // 2)


def _loads(data: bytes | bytearray | memoryview, buffers: Iterable[memoryview] = ()) -> Any:
    if len(data) <= _SEARCHED_BYTES and _MARK not in bytes(data):
        return pickle.loads(data, buffers=buffers)
    return _Unpickler(io.BytesIO(data), buffers=buffers).load()


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Return the object for a name in a pickle; see `pickle.Unpickler`."""
        found = super().find_class(module, name)
        if found is pickle.loads:  # an exception's pickle may contain another pickle
            return loads
        return _INSTEAD.get(name, found) if module == cloudpickle.__name__ else found


def _made_by(make: Callable[..., type]) -> Callable[..., type]:
    def skeleton(*arguments: Any) -> type:
        *_, tracker_id, _ = arguments
        is_here = tracker_id in cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID  # noqa: SLF001 - cloudpickle has no public name for it
        made = make(*arguments)
        if not is_here:
            _filling.add(made)
        return made

    return skeleton


def _set_state(kind: type, state: Any) -> type:
    if kind in _filling:
        cloudpickle._class_setstate(kind, state)  # noqa: SLF001 - cloudpickle has no public name for it
        _filling.discard(kind)
    return kind


_INSTEAD = {
    "_class_setstate": _set_state,
    "_make_skeleton_class": _made_by(cloudpickle._make_skeleton_class),  # noqa: SLF001 - cloudpickle has no public name for it
    "_make_skeleton_enum": _made_by(cloudpickle._make_skeleton_enum),  # noqa: SLF001 - cloudpickle has no public name for it
}
