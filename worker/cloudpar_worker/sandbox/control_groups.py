"""Finds the controllers of control groups (cgroup v2) that the machine has delegated to this process."""

import os
from pathlib import Path
from typing import Final

WANTED: Final = ("cpu", "memory", "pids")
"""The controllers that could limit an executor."""


def delegated(process: Path = Path("/proc/self")) -> list[str]:
    """Return the controllers in WANTED with which this process could limit groups that it makes inside its own group.

    Args:
        process: The process's folder in /proc.
    """
    try:
        folder = _own_group(process)
        controllers = (folder / "cgroup.controllers").read_text().split() if folder else []
    except OSError:
        return []
    # Only a process that may write these two files can make groups, give them controllers, and move processes there.
    if folder is None or not all(
        os.access(folder / f"cgroup.{name}", os.W_OK) for name in ("procs", "subtree_control")
    ):
        return []
    return [each for each in WANTED if each in controllers]


def _own_group(process: Path) -> Path | None:
    """Return the folder of the process's group; None if no file system of cgroup v2 is mounted."""
    mounts = [line.split() for line in (process / "mountinfo").read_text().splitlines()]
    places = [fields[4] for fields in mounts if fields[fields.index("-") + 1] == "cgroup2"]
    groups = [line[3:] for line in (process / "cgroup").read_text().splitlines() if line.startswith("0::")]
    return Path(places[0], groups[0].lstrip("/")) if places and groups else None
