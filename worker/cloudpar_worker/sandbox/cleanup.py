"""Removes what task code leaves behind: processes and files."""

import os
import signal
import stat
import time
from collections.abc import Collection
from contextlib import suppress
from typing import Final

from . import kernel
from .processes import processes
from .uid_pool import is_executors

_PATIENCE_S: Final = 5.0
"""How long `remove` tries again, in seconds. A killed process may still finish a system call that creates a file, which
takes much less time.
"""

_LOOKS: Final = 1_000
"""How often `kill_orphans` looks for further processes. A thousand looks take at most some tenths of a second."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def kill_own_processes() -> None:
    """Kill all other processes of this user with one call, so that none of them can start another that escapes."""
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)


def kill_orphans(mine: Collection[int]) -> bool:
    """Kill the children of this process that are not in `mine`; return False if there are certainly none.

    The calling process has one thread.
    """
    killed: set[int] = set()
    # A process that forks and ends again and again has another id at each look. One look at all processes takes so long
    # that such a process is gone before its signal comes. It would compute on for as long as it likes.
    for _ in range(_LOOKS):
        try:
            orphans = _children().difference(mine, killed)
        except OSError:  # tasks have used up all descriptors of the machine, but not for long
            return True
        for pid in orphans:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        killed |= orphans
        if not orphans:
            break
    return bool(killed)


def _children() -> set[int]:
    """The process ids of the children of this thread, also of those that have ended and are still to be reaped."""
    try:
        with open("/proc/thread-self/children", "rb") as file:
            return set(map(int, file.read().split()))
    except FileNotFoundError:  # a kernel without this list
        return {each.pid for each in processes() if each.parent == os.getpid()}


def remove(folder: str, until: float | None = None) -> bool:
    """Remove a folder of this user with everything in it, and return whether it is gone.

    It tries at least once, and again until the time `until` (by default _PATIENCE_S from now).
    """
    until = time.monotonic() + _PATIENCE_S if until is None else until
    while True:
        with suppress(OSError):
            _empty(folder)
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            return True
        except OSError:
            if time.monotonic() >= until:
                return False
            time.sleep(0.002)


def _empty(folder: str) -> None:
    """Remove what a folder contains.

    It goes down and up by descriptors. So no path grows too long, no call recurses, and nothing is renamed: task code
    could have prepared folders with the names that a renaming would need.

    A process that has the capability SETUID handles each folder as the user to whom it belongs, if that is an
    executor's user. Task code may open a folder to executors of other accounts, and only their users may empty the
    folders that they make in it. Without this, those folders would stay, and no executor could get the first user's id
    again.
    """
    os.chmod(folder, stat.S_IRWXU)
    here = os.open(folder, _FOLDER)
    try:
        outer: list[tuple[str, list[str]]] = []  # the name of each folder on the way down, and what is left beside it
        left = os.listdir(here)
        while left or outer:
            if not left:
                name, left = outer.pop()
                here = _enter("..", here)
                os.rmdir(name, dir_fd=here)  # `here` belongs to the user as which this process handles files
                continue
            name = left.pop()
            if not stat.S_ISDIR(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=here)
                continue
            here = _enter(name, here)
            outer.append((name, left))
            left = os.listdir(here)
    finally:
        os.close(here)
        if kernel.LINUX:
            kernel.use_files_as(os.geteuid())


def _enter(name: str, here: int) -> int:
    """Open a folder below or above an open one, with all rights of its owner, and close that one."""
    if kernel.LINUX:
        there = _open_as_owner(name, here)
    else:
        os.chmod(name, stat.S_IRWXU, dir_fd=here)
        there = os.open(name, _FOLDER, dir_fd=here)
    os.close(here)
    return there


def _open_as_owner(name: str, here: int) -> int:
    # With O_PATH, opening takes no right to the folder itself, and its path in /proc no right to the folders above it:
    # its owner may have none there.
    place = os.open(name, _FOLDER | os.O_PATH, dir_fd=here)
    try:
        owner, path = os.fstat(place).st_uid, f"/proc/self/fd/{place}"
        kernel.use_files_as(owner if is_executors(owner) else os.geteuid())
        os.chmod(path, stat.S_IRWXU)
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    finally:
        os.close(place)


def remove_from(places: Collection[str]) -> bool:
    """Remove the files and folders of this user that lie directly in these folders; return whether all are gone.

    Other users' entries, and what this user owns in other users' folders, stay. A folder in `places` that cannot be
    listed is skipped.
    """
    me, gone, until = os.geteuid(), True, time.monotonic() + _PATIENCE_S
    for place in places:
        with suppress(OSError), os.scandir(place) as entries:
            for entry in entries:
                try:
                    if entry.stat(follow_symlinks=False).st_uid != me:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        gone = remove(entry.path, until) and gone
                    else:
                        os.unlink(entry.path)
                except FileNotFoundError:
                    continue
                except OSError:
                    gone = False
    return gone
