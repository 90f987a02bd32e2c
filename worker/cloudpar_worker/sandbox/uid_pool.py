"""User ids for executors. Each id belongs to at most one executor of this machine, and to no unrelated process."""

import os
import sys
from contextlib import suppress
from pwd import getpwuid
from typing import Final

from . import kernel
from .processes import processes
from .uid_locks import UidLocks

FIRST, NUMBER = 60_578, 4_942
"""The first user id, and how many ids the range has. No distribution assigns these ids to people or permanent services.
systemd uses some of them for temporary services, so `UidPool` skips ids that are in use.

Executors get every second id. The id after an executor's id is called its guard. The process that cleans up after an
executor has the guard as its real user id, so that task code cannot send signals to this process (see `kernel.act_as`).
"""

_CAPABILITIES: Final = "leave it the capabilities SETUID, SETGID and KILL"


def obstacle(tmp: str) -> str:
    """Return the change that the operator has to make to give executors user ids of their own; empty if none is needed.

    The call may fork: make it only in a process with one thread.
    """
    if kernel.capabilities() & kernel.NEEDED != kernel.NEEDED:
        return _CAPABILITIES
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        found = _CAPABILITIES
        with suppress(OSError):
            found = _found_by(FIRST + NUMBER - 1, tmp)
        os.write(writing, found.encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    with os.fdopen(reading) as text:
        return text.read()


def _found_by(user: int, tmp: str) -> str:
    """Return the text of `obstacle` for a user id. To find it, this process takes the user id for good."""
    try:
        UidLocks()
    except OSError:
        return "let it make a folder that only root can use in /run, or else in /dev/shm"
    kernel.become(user)
    try:
        with open(os.__file__, "rb"):
            pass
        for folder in interpreter_folders():
            os.listdir(folder)
    except OSError as error:
        return f"let every user read its Python, as {error.filename}: take one in /usr or /opt, not in a home folder"
    return "" if os.access(tmp, os.W_OK | os.X_OK) else f"let every user write into {tmp}, as into /tmp"


def is_executors(user: int) -> bool:
    """Whether a user id is in the range of ids for executors and their guards."""
    return FIRST <= user < FIRST + NUMBER


def guard_uid(user: int) -> int:
    """Return the user id of the process that cleans up after an executor; see FIRST."""
    return user + 1


class UidPool:
    """The user ids of one zygote; no other zygote has them at the same time.

    Args:
        places: Folders in which earlier executors may have left files. An id that owns a file or folder there is not
            used.

    Raises:
        OSError: The lock file cannot be made, or users other than root can use its folder.
    """

    def __init__(self, places: list[str]) -> None:
        self._locks = UidLocks()
        self._taken = _seen(places)

    def take(self) -> int:
        """Take a free user id.

        Raises:
            OSError: No user id is free.
        """
        for number in range(FIRST, FIRST + NUMBER - 2, 2):
            # Skip an id that is in use elsewhere: tasks could use the files and processes of that id, and those
            # processes could use the tasks' files.
            both = {number, guard_uid(number)}
            if self._taken.isdisjoint(both) and not any(map(_is_known, both)):
                with suppress(OSError):
                    self._locks.acquire(number)
                    self._taken.add(number)
                    return number
        raise OSError("no user id is free for an executor")

    def give_back(self, number: int) -> None:
        """Return a user id to the pool. Call this only when no process and no file of the id remains.

        Until then the zygote keeps the id locked, because the next account with this id could use the files and
        processes that remain. Later zygotes find remaining files and processes by themselves (see `_seen`).
        """
        self._locks.release(number)
        self._taken.discard(number)


def _seen(places: list[str]) -> set[int]:
    """Return the user ids that have a process, or own a file or folder directly in one of these folders."""
    numbers = {process.user for process in processes()}
    for place in places:
        with suppress(OSError), os.scandir(place) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    numbers.add(entry.stat(follow_symlinks=False).st_uid)
    return numbers


def interpreter_folders() -> list[str]:
    """Return the folders of this interpreter, and the folders from which it imports, except the root folder."""
    found = dict.fromkeys(os.path.realpath(path) for path in (sys.prefix, sys.base_prefix, *sys.path) if path)
    return [path for path in found if path != "/" and os.path.isdir(path)]


def _is_known(number: int) -> bool:
    try:
        getpwuid(number)
    except KeyError:
        return False
    return True
