"""Payloads in an open file, which an executor maps into memory. Only Linux passes files reliably to other processes."""

import io
from typing import NamedTuple

from cloudpar_worker.executor.frames import Place


class InFile(NamedTuple):
    """Where payloads are in a file: one place for task code, or one for each task."""

    file: io.FileIO
    places: list[Place]


def size_of(code: bytes | InFile) -> int:
    """Return how many bytes task code has."""
    if not isinstance(code, InFile):
        return len(code)
    ((start, end),) = code.places
    return end - start
