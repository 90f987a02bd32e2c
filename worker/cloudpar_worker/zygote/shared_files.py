"""Measures an executor's files in shared memory, where executors share the file system at SHARED_MEMORY.

A file can exist without a name. If a process has a descriptor of such a file, the descriptor shows the size of the
file. The size is unknown if the descriptor is under way through a socket, or if the process hides its descriptors. In
these cases the result includes all shared memory that belongs to no file with a name: otherwise a task could fill the
machine's memory with such files.

If a process has closed the descriptor of a file without a name, but has mapped a part of the file, only this part
counts. A lock of `multiprocessing` is such a file. If all shared memory without a name counted because of such a file,
the result would be wrong for each task that has such a lock.
"""

import os
import stat
from collections.abc import Collection
from contextlib import suppress

from cloudpar_worker.sandbox.shared_memory import ENTRY_BYTES, SHARED_MEMORY, used_bytes


def shared_bytes(threads: Collection[int]) -> int:
    """Return the size of this user's files in shared memory, plus ENTRY_BYTES for each file and folder.

    `threads` has one thread of each process of this user except the calling process. If one of these processes holds a
    file of unknown size, the result is an upper bound, which may include other users' files without a name.
    """
    device = os.stat(SHARED_MEMORY).st_dev
    mine, others = _named()
    exact = all(_shows(thread, device, mine) for thread in threads)
    return sum(mine.values()) if exact else max(sum(mine.values()), used_bytes(SHARED_MEMORY) - sum(others.values()))


def _named() -> tuple[dict[int, int], dict[int, int]]:
    """Return the sizes of all files and folders with a name, by inode: those of this user, and those of other users."""
    mine: dict[int, int] = {}
    others: dict[int, int] = {}
    for _, folders, names, folder in os.fwalk(SHARED_MEMORY):
        for name in (*folders, *names):
            with suppress(OSError):
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                of = mine if status.st_uid == os.getuid() else others
                of[status.st_ino] = _size(status)
    return mine, others


def _shows(thread: int, device: int, held: dict[int, int]) -> bool:
    """Add the files of a process's descriptors to `held`; return whether the size of each of its files is known."""
    try:
        with os.scandir(f"/proc/{thread}/fd") as descriptors:
            return not any(_adds(thread, descriptor, device, held) for descriptor in descriptors)
    except (FileNotFoundError, ProcessLookupError):  # the process has just ended
        return True
    except OSError:  # the process hides what it holds, as it hides its memory
        return False


def _adds(thread: int, descriptor: os.DirEntry[str], device: int, held: dict[int, int]) -> bool:
    """Add a file to `held`; return whether `descriptor` is a socket in which descriptors wait to be received."""
    try:
        status = descriptor.stat()
        if status.st_dev == device:
            held[status.st_ino] = _size(status)
        return stat.S_ISSOCK(status.st_mode) and _has_waiting(f"/proc/{thread}/fdinfo/{descriptor.name}")
    except FileNotFoundError:  # the process has just closed it
        return False


def _has_waiting(information: str) -> bool:
    """Whether descriptors wait in a socket, according to the file `information` about the socket."""
    with open(information, "rb") as file:
        return any(int(line.split()[1]) for line in file if line.startswith(b"scm_fds:"))


def _size(status: os.stat_result) -> int:
    return ENTRY_BYTES + 512 * status.st_blocks
