"""The processes of this machine, or of the container in which this process runs."""

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

_PRIVATE: Final = (b"RssAnon", b"RssShmem", b"VmSwap")


class Process(NamedTuple):
    """What every user may read about a process."""

    pid: int
    parent: int
    user: int
    threads: int
    descriptors: int
    """For how many descriptors it has room, which is at least as many as it has open."""
    private_bytes: int
    """Its memory without pages of files, but with the pages that it still shares with its parent after a fork. 0 if it
    has ended and is still listed."""
    thread: int
    """A thread that shows its memory: its first thread, which has the same id, or another one if that has ended."""


def processes() -> Iterator[Process]:
    """All processes that this user may see. Linux only."""
    for name in os.listdir("/proc"):
        process = process_of(int(name)) if name.isdigit() else None
        if process is not None:
            yield process


def process_of(pid: int) -> Process | None:
    """One process; None if it has ended, or if the system hides it from this user (hidepid)."""
    status = _status(pid)
    if status is None:
        return None
    parent, user, threads = int(status[b"PPid"]), int(status[b"Uid"].split()[0]), int(status.get(b"Threads", 0))
    thread = pid
    if threads > 1 and not _private_bytes(status):
        # The first thread of the process has ended, and others run. The kernel shows the process as ended, without its
        # memory and descriptors. Task code could compute in such a process with neither a charge nor a limit.
        thread, status = next(_running_threads(pid), (pid, status))
    return Process(pid, parent, user, threads, int(status.get(b"FDSize", 0)), _private_bytes(status), thread)


def _running_threads(pid: int) -> Iterator[tuple[int, dict[bytes, bytes]]]:
    """The threads of a process that have not ended, and what each of them shows of the process."""
    with suppress(OSError):  # the process has ended
        for name in os.listdir(f"/proc/{pid}/task"):
            status = _status(int(name)) or {}
            if _private_bytes(status):
                yield int(name), status


def _status(thread: int) -> dict[bytes, bytes] | None:
    try:
        # Bytes, because a process names itself: a name that is not UTF-8 would raise here and end the agent. The name
        # is on the first line, so that what looks like other fields in it does not replace them.
        with open(f"/proc/{thread}/status", "rb") as file:
            return dict(line.split(b":", 1) for line in file if b":" in line)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None


def _private_bytes(status: dict[bytes, bytes]) -> int:
    return sum(int(status.get(part, b"0").split()[0]) for part in _PRIVATE) << 10
