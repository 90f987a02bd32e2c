"""Pickles functions of `cloudpar` by value and compresses them, since a worker may lack the package `cloudpar`."""

import pickle
import threading
import zlib
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import cloudpickle


def reduced(function: Callable[..., Any], module: ModuleType) -> tuple[Any, ...]:
    """Return the value by which pickle rebuilds a function of `cloudpar` at a worker, in the form of `__reduce__`.

    Args:
        function: A function of `module`, or of a module inside `module`.
        module: A module or Python package of `cloudpar`. All its functions and classes are pickled by value.
    """
    return pickle.loads, (PickledCall(zlib.decompress, _deflated(function, module)),)


_registering = threading.Lock()


class PickledCall:
    """An object whose pickle is a call of a function: unpickling it gives the function's return value."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._call = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self._call


@cache
def _deflated(function: Callable[..., Any], module: ModuleType) -> bytes:
    """Pickle and compress a function, once per process: a pickle may take 17 ms and 43 KB (20 KB compressed)."""
    with _registering:  # threads share cloudpickle's registry: one thread could remove a module that another needs
        cloudpickle.register_pickle_by_value(module)
        try:
            return zlib.compress(cloudpickle.dumps(function, protocol=5), 9)
        finally:
            cloudpickle.unregister_pickle_by_value(module)
