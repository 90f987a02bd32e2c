"""Waits for a condition that another process or thread changes."""

import time
from collections.abc import Callable
from pathlib import Path
from threading import Event

HANG_S = 60.0
"""A time that only a hanging process exceeds."""


def await_file(path: Path) -> None:
    """Wait until a task has made a file."""
    until(path.exists)


def until(condition: Callable[[], bool], longest_s: float = HANG_S) -> None:
    """Wait for a condition that another process changes."""
    deadline = time.monotonic() + longest_s
    while not condition():
        assert time.monotonic() < deadline
        Event().wait(0.01)
