"""Functions of this package that run at workers. A worker may lack the package, so they travel by value, compressed."""

import pickle
import threading
import zlib
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import cloudpickle


def reduced(function: Callable[..., Any], module: ModuleType) -> tuple[Any, ...]:
    """Return how pickle rebuilds a function of this package at a worker.

    Args:
        function: A function of `module`, or of a module in that package.
        module: The module or package whose functions and classes all travel by value.
    """
    return pickle.loads, (PickledCall(zlib.decompress, _deflated(function, module)),)


_registering = threading.Lock()


class PickledCall:
    """Pickles as a call of a function: unpickling this object gives what the function returns."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._call = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self._call


@cache
def _deflated(function: Callable[..., Any], module: ModuleType) -> bytes:
    """Pickle and compress a function, once per process: a pickle may take 17 ms and 43 KB (20 KB compressed)."""
    with _registering:  # threads share cloudpickle's registry: one would remove a module that another still needs
        cloudpickle.register_pickle_by_value(module)
        try:
            return zlib.compress(cloudpickle.dumps(function, protocol=5), 9)
        finally:
            cloudpickle.unregister_pickle_by_value(module)
