"""UidPool for executors: numbers that nobody else on this machine has, each for one executor at a time."""

import os
import sys
from contextlib import suppress
from pwd import getpwuid
from typing import Final

from . import kernel
from .processes import processes
from .uid_locks import UidLocks

FIRST, NUMBER = 60_578, 4_942
"""No distribution gives these numbers to people or lasting services; some go to passing ones of systemd, like ours.

Every other one is an executor's; the next is the guard, by which whoever clears up after it is out of its reach.
"""


_CAPABILITIES: Final = "leave it the capabilities SETUID, SETGID and KILL"


def obstacle(tmp: str) -> str:
    """Why this process may not give executors users of their own, by the mend; empty: it may.

    Forks, so only for processes of one thread.
    """
    if kernel.capabilities() & kernel.NEEDED != kernel.NEEDED:
        return _CAPABILITIES
    told, tell = os.pipe()
    pid = os.fork()
    if not pid:
        found = _CAPABILITIES
        with suppress(OSError):
            found = _found_by(FIRST + NUMBER - 1, tmp)
        os.write(tell, found.encode())
        os._exit(0)
    os.close(tell)
    os.waitpid(pid, 0)
    with os.fdopen(told) as words:
        return words.read()


def _found_by(user: int, tmp: str) -> str:
    """In a process that becomes this user."""
    try:
        UidLocks()
    except OSError:
        return "leave it a folder of root's alone in /run, or else in /dev/shm"
    kernel.become(user)
    try:
        with open(os.__file__, "rb"):  # noqa: PTH123 - pathlib would be imported for this alone
            pass
        for folder in interpreter_folders():
            os.listdir(folder)  # noqa: PTH208 - the same
    except OSError as error:
        return f"let every user read its Python, as {error.filename}: take one in /usr or /opt, not in a home folder"
    return "" if os.access(tmp, os.W_OK | os.X_OK) else f"let every user write into {tmp}, as into /tmp"


def available(tmp: str) -> bool:
    """Whether it may."""
    return not obstacle(tmp)


def guard_uid(user: int) -> int:
    """See FIRST."""
    return user + 1


class UidPool:
    """Those of one zygote, no other of which has them, too.

    Args:
        places: Folders in which whoever was here before may have left something.

    Raises:
        OSError: UidPool cannot be told apart from those of other zygotes.
    """

    def __init__(self, places: list[str]) -> None:
        self._locks = UidLocks()
        self._taken = _seen(places)

    def take(self) -> int:
        """A free one.

        Raises:
            OSError: There is none.
        """
        for number in range(FIRST, FIRST + NUMBER - 2, 2):
            both = {number, guard_uid(number)}
            if self._taken.isdisjoint(both) and not any(map(_is_known, both)):
                with suppress(OSError):
                    self._locks.acquire(number)
                    self._taken.add(number)
                    return number
        raise OSError("no user is free for an executor")

    def give_back(self, number: int, *, clean: bool) -> None:
        """Let others take it. If something is left of it, nobody does, of no zygote: the next ones see what is left."""
        if clean:
            self._locks.release(number)
            self._taken.discard(number)


def _seen(places: list[str]) -> set[int]:
    """Who has a process, or an entry in one of the places."""
    numbers = {process.user for process in processes()}
    for place in places:
        with suppress(OSError), os.scandir(place) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    numbers.add(entry.stat(follow_symlinks=False).st_uid)
    return numbers


def interpreter_folders() -> list[str]:
    """The folders of this interpreter and of its packages, but never the root of the file system."""
    found = dict.fromkeys(os.path.realpath(path) for path in (sys.prefix, sys.base_prefix, *sys.path) if path)
    return [path for path in found if path != "/" and os.path.isdir(path)]  # noqa: PTH112 - the same


def _is_known(number: int) -> bool:
    try:
        getpwuid(number)
    except KeyError:
        return False
    return True
