"""Measures an executor's files in shared memory, where executors share the file system at SHARED_MEMORY.

A file can be there although no name shows it. If a process holds its descriptor, the descriptor shows its size. If the
descriptor is under way through a socket, or if the process hides its descriptors, its size is unknown. Then all memory
that no name shows counts: otherwise a task could fill the machine's memory with such files.

A file of which a process has only mapped a part counts by this part. To count all unnamed memory for such a process
would be wrong for each task with a lock of `multiprocessing`, which is such a file.
"""

import os
import stat
from collections.abc import Collection
from contextlib import suppress

from cloudpar_worker.sandbox.shared_memory import ENTRY_BYTES, SHARED_MEMORY, used_bytes


def shared_bytes(threads: Collection[int]) -> int:
    """The size of this user's files in shared memory, with ENTRY_BYTES for each file and folder.

    `threads` has one thread of each process of this user except the calling process. If one of these processes holds a
    file of unknown size, the result is an upper bound, which may contain files of other users that have no name.
    """
    device = os.stat(SHARED_MEMORY).st_dev
    mine, others = _named()
    exact = all(_shows(thread, device, mine) for thread in threads)
    return sum(mine.values()) if exact else max(sum(mine.values()), used_bytes(SHARED_MEMORY) - sum(others.values()))


def _named() -> tuple[dict[int, int], dict[int, int]]:
    """The sizes of all files and folders with a name, by inode: those of this user, and those of other users."""
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
    """Add to `held` what the descriptors of a process hold; return whether this is all that the process holds."""
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
    """Whether descriptors wait in a socket, as this information about it says."""
    with open(information, "rb") as file:
        return any(int(line.split()[1]) for line in file if line.startswith(b"scm_fds:"))


def _size(status: os.stat_result) -> int:
    return ENTRY_BYTES + 512 * status.st_blocks
