"""Payloads that an executor gets as an open file, and maps into memory instead of receiving a copy.

The mapping is private: all executors share the memory of the file, and if a task writes into an array, the kernel
copies the pages that the task writes to.
"""

import mmap
import os
import sys
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from weakref import WeakSet

from cloudpar_protocol import large_buffers

from .frames import Place

MOST_MAPPINGS: Final = 64
"""How many mappings an executor has at the same time. Further payloads are copied. Before Python 3.13, each mapping
keeps a descriptor open, and a function may keep the arguments of thousands of tasks.
"""
_OPTIONS: Final[dict[str, Any]] = {"trackfd": False} if sys.version_info >= (3, 13) else {}

_mappings: WeakSet[mmap.mmap] = WeakSet()


class Mapped(NamedTuple):
    """A pickle in memory that only this process changes, and its distance from the start of a page, in bytes."""

    data: memoryview
    at: int

    @classmethod
    def of(cls, descriptor: int, place: Place) -> "Mapped":
        """Map a part of a file, or read it if it cannot be mapped.

        Raises:
            OSError: The file cannot be read.
        """
        start, end = place
        at = start % mmap.ALLOCATIONGRANULARITY
        if len(_mappings) >= MOST_MAPPINGS or start >= end:
            return cls(_read(descriptor, place), 0)
        try:
            memory = mmap.mmap(
                descriptor, end - start + at, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE,
                offset=start - at, **_OPTIONS,
            )  # fmt: skip
        except OSError:  # the task has used up its descriptors, or its address space
            return cls(_read(descriptor, place), 0)
        _mappings.add(memory)
        return cls(memoryview(memory)[at:], at)

    def load(self) -> Any:
        """Unpickle the object. Its large buffers are parts of this memory, which lives as long as they do.

        Raises:
            Exception: The pickle is not valid, or a class that it names raised the exception.
        """
        return large_buffers.loads(self.data, self.at)


def _read(descriptor: int, place: Place) -> memoryview:
    start, end = place
    memory, position = memoryview(bytearray(max(end - start, 0))), 0
    while position < len(memory):
        count = os.preadv(descriptor, [memory[position:]], start + position)
        if not count:
            raise OSError("the file of a payload is shorter than the payload")
        position += count
    return memory


class MappedItems:
    """The data of a run's tasks in a file. An item is mapped when its task starts, until nothing uses it any more."""

    def __init__(self, descriptor: int, places: Sequence[Place]) -> None:
        self._descriptor = descriptor
        self._places = places

    def __getitem__(self, position: int) -> Mapped:
        return Mapped.of(self._descriptor, self._places[position])
