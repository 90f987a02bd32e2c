"""Locks on user ids: at most one process of this machine holds the lock of an id.

Each lock is a POSIX lock on one byte of a file that root owns.

Task code cannot take these locks. If the locks were abstract sockets, or files in a folder that all users share, a task
could take all of them, and no other account would get an executor.
"""

import errno
import fcntl
import os
from contextlib import suppress
from typing import Final

from . import kernel

NAME: Final = "cloudpar-users"
"""The name of the folder; it contains one empty file."""
PLACES: Final = ("/run", "/dev/shm")  # noqa: S108 - the folder is root's alone, or is not used
"""The second folder is used if the first is missing or, as in the worker's container, read-only. Root owns both."""
_OWNER = 0
"""The user who must own the folder: root."""
_PRIVATE: Final = os.O_NOFOLLOW | os.O_CLOEXEC


class UidLocks:
    """The locks of this process. The kernel does not pass them to forks, and releases them when the process ends.

    A process must make only one object and keep it, because closing the file releases all locks.

    Raises:
        OSError: The lock file cannot be made here, or users other than root can use its folder.
    """

    def __init__(self) -> None:
        with kernel.files_of_root():
            folder = _folder()
            try:
                self._file = os.open("users", os.O_RDWR | os.O_CREAT | _PRIVATE, 0o600, dir_fd=folder)
            finally:
                os.close(folder)

    def acquire(self, number: int) -> None:
        """Take the lock of a user id.

        Raises:
            OSError: Another process holds the lock.
        """
        fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)

    def release(self, number: int) -> None:
        """Release the lock of a user id, so that another process can take it."""
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, number)


def _folder() -> int:
    path = os.path.join(_place(), NAME)
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _PRIVATE)
    # In /dev/shm every user can make a folder of this name before root does, and could then lock all user ids.
    status = os.fstat(folder)
    if status.st_uid != _OWNER or status.st_mode & 0o077:
        os.close(folder)
        raise PermissionError(errno.EACCES, "can be used by others than root", path)
    return folder


def _place() -> str:
    """Return the folder of the lock file.

    All processes must choose the same folder, so the choice depends only on facts that are equal for all of them. If
    two processes locked different files, both could give the same user id to executors of different accounts.
    """
    with suppress(OSError):
        if not os.statvfs(PLACES[0]).f_flag & os.ST_RDONLY:
            return PLACES[0]
    return PLACES[1]
