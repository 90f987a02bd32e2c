"""Gives executors shared memory: where possible, each executor has a file system of its own at /dev/shm.

Only this executor can use the files in its file system. The kernel knows the size of all these files, even of files
without a name. The files disappear with the executor.
"""

import os
from contextlib import suppress
from typing import Final

from . import kernel

SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - the system's
ENTRY_BYTES: Final = 4096
"""How many bytes each file and folder in SHARED_MEMORY adds to an executor's memory, besides its content. So the memory
limit of an executor also bounds the number of these files, and the time that finding and removing them takes.
"""
_ROOM: Final = 2
"""The size of an executor's own file system, as a multiple of the executor's memory limit. The agent stops an executor
above this limit, with an error that names the limit. If the file system were only as large as the limit, it could be
full before the agent measures. A write to mapped memory would then end the executor by SIGBUS, without this error.
"""
_MOUNTS: Final = 0x0002_0000
_SLAVE: Final = 1 << 19
_ALL_BELOW: Final = 1 << 14


def own_is_possible() -> bool:
    """Whether this process can give executors file systems of their own. A forked process tries it.

    The process needs the capability SYS_ADMIN, and a kernel of version 5.2 or newer.
    """
    if not kernel.LINUX:
        return False
    pid = os.fork()
    if not pid:
        status = 1
        with suppress(BaseException):
            enter(make(1 << 20))
            status = 0
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def make(memory_bytes: int) -> int:
    """Make a file system for an executor with this memory limit; return a descriptor that keeps it alive.

    Raises:
        OSError: The kernel refuses.
    """
    room = max(_ROOM * memory_bytes, 1 << 20)
    return kernel.make_file_system("tmpfs", {"size": room, "nr_inodes": room // ENTRY_BYTES, "mode": 1777})


def enter(descriptor: int) -> None:
    """Let this process, an executor, and all that it starts see this file system at SHARED_MEMORY.

    Raises:
        OSError: The kernel refuses.
    """
    kernel.unshare(_MOUNTS)
    # Without this call, the mount below would show in the whole machine. Later mounts of the machine still show here.
    kernel.change_mount("/", _SLAVE | _ALL_BELOW)
    kernel.attach_file_system(descriptor, SHARED_MEMORY)


def used_bytes(place: int | str) -> int:
    """Return the bytes of memory that the file system at a path, or with a descriptor, takes.

    ENTRY_BYTES are added for each file and folder in it.
    """
    system = os.statvfs(place)
    entries = max(system.f_files - system.f_ffree - 1, 0)  # without the folder at the top
    return (system.f_blocks - system.f_bfree) * system.f_frsize + entries * ENTRY_BYTES
