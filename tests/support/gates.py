"""Files that tasks wait for."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def opening(gate: Path) -> Iterator[Path]:
    """Open the gate at the end in any case: a pool waits for its tasks, and they wait for the gate."""
    try:
        yield gate
    finally:
        gate.touch()
