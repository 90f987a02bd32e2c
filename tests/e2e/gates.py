"""Files that tasks wait for."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def opening(gate: Path) -> Iterator[Path]:
    """A gate that is open in the end, however that comes: a pool waits for its tasks, and they for the gate."""
    try:
        yield gate
    finally:
        gate.touch()
