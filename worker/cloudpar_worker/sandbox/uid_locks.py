"""Numbers, each of which one process of this machine has at a time: locks on the bytes of a file of root's.

Task code can take none. What is nobody's, such as the names of abstract sockets or files in a folder that is
everybody's, it would take first, all of it, and no other account would get an executor.
"""

import errno
import fcntl
import os
from contextlib import suppress
from typing import Final

from . import kernel

NAME: Final = "cloudpar-users"
"""The folder's; in it is one file of no length."""
PLACES: Final = ("/run", "/dev/shm")  # noqa: S108 - the folder is root's alone, or is not used
"""The second one can be written where the first cannot, as in the container, and is root's, too."""
_OWNER = 0
_PRIVATE: Final = os.O_NOFOLLOW | os.O_CLOEXEC


class UidLocks:
    """Those of this process: the kernel gives none to what it forks, and frees them when it ends, however it goes.

    So there is one of these in a process, for as long as it runs: closing the file would free all of them.

    Raises:
        OSError: There can be none here.
    """

    def __init__(self) -> None:
        with kernel.files_of_root():
            folder = _folder()
            try:
                self._file = os.open("users", os.O_RDWR | os.O_CREAT | _PRIVATE, 0o600, dir_fd=folder)
            finally:
                os.close(folder)

    def acquire(self, number: int) -> None:
        """Have it.

        Raises:
            OSError: Another process has it.
        """
        fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)

    def release(self, number: int) -> None:
        """Others may take it."""
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, number)


def _folder() -> int:
    path = os.path.join(_place(), NAME)  # noqa: PTH118 - pathlib would be imported for this alone
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)  # noqa: PTH102
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _PRIVATE)
    status = os.fstat(folder)
    if status.st_uid != _OWNER or status.st_mode & 0o077:
        os.close(folder)
        raise PermissionError(errno.EACCES, "is not root's alone", path)
    return folder


def _place() -> str:
    """By what is the same for all that see these files, whatever each may do: all of them must lock one file."""
    with suppress(OSError):
        if not os.statvfs(PLACES[0]).f_flag & os.ST_RDONLY:
            return PLACES[0]
    return PLACES[1]
