"""Functions of this package that run at workers, which need not have it: they travel by value, deflated."""

import pickle
import threading
import zlib
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import cloudpickle


def reduced(function: Callable[..., Any], module: ModuleType) -> tuple[Any, ...]:
    """How pickle rebuilds a function from what this package has of it.

    Args:
        function: Of `module`, or of a module in that package.
        module: All of whose functions and classes travel by value.
    """
    return pickle.loads, (_Inflated(_pickled(function, module)),)


_registering = threading.Lock()


class _Inflated:
    """Pickles as a call that inflates bytes at the worker."""

    def __init__(self, deflated: bytes) -> None:
        self._deflated = deflated

    def __reduce__(self) -> tuple[Any, ...]:
        return zlib.decompress, (self._deflated,)


@cache
def _pickled(function: Callable[..., Any], module: ModuleType) -> bytes:
    """Pickled once for a process and not with each task code: that may cost 17 ms and 43 KB, deflated 20 KB."""
    with _registering:  # the registry is the process's: one thread would take out what another one still needs
        cloudpickle.register_pickle_by_value(module)
        try:
            return zlib.compress(cloudpickle.dumps(function, protocol=5), 9)
        finally:
            cloudpickle.unregister_pickle_by_value(module)
