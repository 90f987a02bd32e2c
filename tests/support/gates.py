"""Files and pipes that tasks wait for."""

import os
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


def pipe(path: Path) -> str:
    """Make a named pipe: opening one of its ends waits for the other."""
    os.mkfifo(path)
    return str(path)


def pass_gate(running: str, gate: str) -> str:
    """Report that this task runs, and end when the test writes to the gate."""
    Path(running).write_text("running")
    return Path(gate).read_text()
