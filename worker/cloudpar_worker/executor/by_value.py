"""Pickles results and exceptions by value: the pickle contains classes and functions that the client cannot import.

For example, the client cannot import the classes of an executor's `__main__`.
"""

import io
from types import FunctionType
from typing import Any

import cloudpickle

from cloudpar_protocol import decorated, function_globals, open_files


class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """A pickler that treats open files, standard decorators and globals of functions as the client's pickler does.

    With cloudpickle alone, a client could send an object whose class has a `cached_property`, but could not get the
    object back.
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
    """Pickle a value. Classes and functions that are in `__main__` or cannot be imported become part of the pickle.

    Raises:
        BaseException: What pickling raised.
    """
    file = io.BytesIO()
    pickler(file, protocol=5).dump(value)
    return file.getvalue()
