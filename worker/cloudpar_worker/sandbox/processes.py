"""The processes of this machine, or of the container in which this process runs."""

import os
from collections.abc import Iterator
from typing import Final, NamedTuple

_PRIVATE: Final = ("RssAnon", "RssShmem", "VmSwap")


class Process(NamedTuple):
    """What every user may read about a process."""

    pid: int
    parent: int
    user: int
    threads: int
    private_bytes: int
    """Its memory without pages of files, but with the pages that it still shares with its parent after a fork."""


def processes() -> Iterator[Process]:
    """All processes that this user may see. Linux only."""
    for name in os.listdir("/proc"):
        process = process_of(int(name)) if name.isdigit() else None
        if process is not None:
            yield process


def process_of(pid: int) -> Process | None:
    """One process; None if it has ended, or if the system hides it from this user (hidepid)."""
    try:
        with open(f"/proc/{pid}/status") as file:
            status = dict(line.split(":", 1) for line in file if ":" in line)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    private_kib = sum(int(status.get(part, "0").split()[0]) for part in _PRIVATE)
    threads = int(status.get("Threads", 0))
    return Process(pid, int(status["PPid"]), int(status["Uid"].split()[0]), threads, private_kib << 10)
