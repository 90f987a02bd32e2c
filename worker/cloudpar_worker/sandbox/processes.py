"""The processes of this machine, or of the container in which this process runs."""

import os
from collections.abc import Iterator
from typing import Final, NamedTuple

_PRIVATE: Final = (b"RssAnon", b"RssShmem", b"VmSwap")


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
        # Bytes, because a process names itself: a name that is not UTF-8 would raise here and end the agent. The name
        # is on the first line, so that what looks like other fields in it does not replace them.
        with open(f"/proc/{pid}/status", "rb") as file:
            status = dict(line.split(b":", 1) for line in file if b":" in line)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    private_kib = sum(int(status.get(part, b"0").split()[0]) for part in _PRIVATE)
    parent, user = int(status[b"PPid"]), int(status[b"Uid"].split()[0])
    return Process(pid, parent, user, int(status.get(b"Threads", 0)), private_kib << 10)
