"""Pickles results by value: with the classes and functions that the client could not import, as those of `__main__`."""

import io
from types import FunctionType
from typing import Any

import cloudpickle

from cloudpar_protocol import decorated, function_globals, open_files


class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """A pickler that treats open files, the standard library's decorators and functions' globals as the client's does.

    Otherwise a client could send an object whose class has a `cached_property` to a task, but not get it back.
    """

    def reducer_override(self, obj: Any) -> Any:
        """Say how to pickle an object; see `pickle.Pickler`."""
        reduced = open_files.reduce(obj) or decorated.reduce(obj, decorated.has_name)
        if reduced is None:
            reduced = super().reducer_override(obj)
            if isinstance(obj, FunctionType):
                reduced = function_globals.complete(reduced, obj)
        return reduced


def dumps(value: Any, pickler: type[Pickler] = Pickler) -> bytes:
    """Pickle a value. Classes and functions in it that the client could not find by name go by value."""
    file = io.BytesIO()
    pickler(file, protocol=5).dump(value)
    return file.getvalue()
