"""The memory of this machine, or of the container in which the agent runs."""

from pathlib import Path
from typing import Final

import psutil

_CGROUPS: Final = Path("/sys/fs/cgroup")
_LIMITS: Final = ("memory.max", "memory/memory.limit_in_bytes")
"""The file names of the limit in control groups of version 2 and of version 1."""


def memory_bytes() -> int:
    """The memory of the machine, or the container's limit if that is smaller."""
    return limited(psutil.virtual_memory().total, _CGROUPS)


def limited(total: int, cgroups: Path) -> int:
    """The smallest of `total` and the limits that a folder of control groups contains."""
    for name in _LIMITS:
        try:
            total = min(total, int((cgroups / name).read_text()))
        except (OSError, ValueError):  # the file is missing, or it contains "max"
            continue
    return total
