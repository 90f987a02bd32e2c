"""Payloads that an executor gets as an open file, and maps into memory instead of receiving a copy.

The mapping is private: all executors share the memory of the file, and if a task writes into an array, the kernel
copies the pages that the task writes to.
"""

import mmap
from collections.abc import Sequence
from typing import Any, NamedTuple

from cloudpar_protocol import large_buffers

from .frames import Place


class Mapped(NamedTuple):
    """A pickle in mapped memory, and its distance from the start of the mapping's first page, in bytes."""

    data: memoryview
    at: int

    @classmethod
    def of(cls, descriptor: int, place: Place) -> "Mapped":
        """Map a part of a file.

        Raises:
            OSError: The system cannot map the file, for example because the process has no address space left.
        """
        start, end = place
        at = start % mmap.ALLOCATIONGRANULARITY
        memory = mmap.mmap(
            descriptor, end - start + at, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE,
            offset=start - at,
        )  # fmt: skip
        return cls(memoryview(memory)[at:], at)

    def load(self) -> Any:
        """Unpickle the object. Its large buffers are parts of the mapping, which lives as long as they do.

        Raises:
            Exception: The pickle is not valid, or a class that it names raised the exception.
        """
        return large_buffers.loads(self.data, self.at)


class MappedItems:
    """The data of a run's tasks in a file. An item is mapped when its task starts, until nothing uses it any more."""

    def __init__(self, descriptor: int, places: Sequence[Place]) -> None:
        self._descriptor = descriptor
        self._places = places

    def __getitem__(self, position: int) -> Mapped:
        return Mapped.of(self._descriptor, self._places[position])
