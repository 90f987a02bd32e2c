"""Users for executors: numbers that nobody else on this machine has, each for one executor at a time."""

import os
import socket
from contextlib import suppress
from pwd import getpwuid

from . import kernel
from .interpreter import folders
from .processes import processes

FIRST, NUMBER = 60_578, 4_942
"""No distribution gives these numbers to people or lasting services; some go to passing ones of systemd, like ours."""


def are_there(tmp: str) -> bool:
    """Whether this process may give executors users of their own, to whom this interpreter is readable.

    Forks, so only for processes of one thread.
    """
    if kernel.capabilities() & kernel.NEEDED != kernel.NEEDED:
        return False
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    code = 1
    with suppress(OSError):
        kernel.become(FIRST + NUMBER - 1)
        with open(os.__file__, "rb"):  # noqa: PTH123 - pathlib would be imported for this alone
            pass
        for folder in folders():
            os.listdir(folder)  # noqa: PTH208 - the same
        code = 0 if os.access(tmp, os.W_OK | os.X_OK) else 1
    os._exit(code)


class User:
    """One, until `free`. Its name as an abstract socket is taken for so long: no other zygote has it, too."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._lock = socket.socket(socket.AF_UNIX)
        try:
            self._lock.bind(f"\0cloudpar-user-{number}")
        except OSError:
            self._lock.close()
            raise

    def free(self) -> None:
        """Others may take it."""
        self._lock.close()


class Users:
    """Those of one zygote.

    Args:
        places: Folders in which whoever was here before may have left something.
    """

    def __init__(self, places: list[str]) -> None:
        self._taken = _seen(places)
        self._spoilt: list[User] = []

    def take(self) -> User:
        """A free one.

        Raises:
            OSError: There is none.
        """
        for number in range(FIRST, FIRST + NUMBER - 1):
            if number not in self._taken and not _is_known(number):
                with suppress(OSError):
                    user = User(number)
                    self._taken.add(number)
                    return user
        raise OSError("no user is free for an executor")

    def give_back(self, user: User, *, spotless: bool) -> None:
        """Let others take it. If something is left of it, nobody does, of no zygote: the next ones see what is left."""
        if spotless:
            user.free()
            self._taken.discard(user.number)
        else:
            self._spoilt.append(user)


def _seen(places: list[str]) -> set[int]:
    """Who has a process, or an entry in one of the places."""
    numbers = {process.user for process in processes()}
    for place in places:
        with suppress(OSError), os.scandir(place) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    numbers.add(entry.stat(follow_symlinks=False).st_uid)
    return numbers


def _is_known(number: int) -> bool:
    try:
        getpwuid(number)
    except KeyError:
        return False
    return True
