"""What a workload uses of a library."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

WORKERS = 2
"""How many processes each library starts for tasks."""

Function = Callable[[Any], Any]
OnArray = Callable[[Any, Any], Any]
"""A task that reads a large array, which all tasks share, and has one value of its own."""


@dataclass(frozen=True)
class Engine:
    """A library with its processes.

    Attributes:
        map: Calls a function for each value; returns the results in the order of the values.
        call: Runs one call in one of the processes; returns its result.
        map_on_array: Calls a function with the array and each value; returns the results in the order of the values.
            None if the library has no way for this.
    """

    map: Callable[[Function, Sequence[Any]], list[Any]]
    call: Callable[[Function, Any], Any]
    map_on_array: Callable[[OnArray, Sequence[Any]], list[Any]] | None = None


Open = Callable[[Any], AbstractContextManager[Engine]]
"""Imports a library and starts its processes. The argument is the array that tasks share, or None."""


def chunk_size(values: Sequence[Any]) -> int:
    """Return the size of chunks that multiprocessing.Pool computes, for libraries that leave this to their users."""
    return max(1, -(-len(values) // (4 * WORKERS)))
