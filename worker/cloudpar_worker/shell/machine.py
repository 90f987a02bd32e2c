"""What this machine, or the container of it that we are in, has."""

from pathlib import Path
from typing import Final

import psutil

_CGROUPS: Final = Path("/sys/fs/cgroup")
_LIMITS: Final = ("memory.max", "memory/memory.limit_in_bytes")
"""Of control groups of version 2 and 1."""


def memory_bytes() -> int:
    """The memory there is: the machine's, or the container's if that may use less."""
    return limited(psutil.virtual_memory().total, _CGROUPS)


def limited(total: int, cgroups: Path) -> int:
    """The smallest of the machine's memory and the limits in a folder of control groups."""
    for name in _LIMITS:
        try:
            total = min(total, int((cgroups / name).read_text()))
        except (OSError, ValueError):  # there is none, or it is "max"
            continue
    return total
