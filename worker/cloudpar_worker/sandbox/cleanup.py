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
"""How long `remove` repeats its attempts, in seconds. A killed process may still finish a system call that creates a
file, but such a call takes much less time.
"""

_LOOKS: Final = 1_000
"""How often `kill_orphans` searches for further processes. A thousand searches take at most some tenths of a second."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def kill_own_processes() -> None:
    """Kill all other processes of this user with one call, so that none of them can start a process that escapes."""
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)


def kill_orphans(mine: Collection[int]) -> bool:
    """Kill the children of this process that are not in `mine`; return False if there are certainly no such children.

    The calling process must have only one thread.
    """
    dead: set[int] = set()
    # A process may fork and end, and its child may do the same, again and again. Each search then finds another process
    # id, and the process with this id has ended before the signal reaches it. With a single search, such a chain of
    # processes could compute without end.
    for _ in range(_LOOKS):
        try:
            orphans = _children().difference(mine, dead)
        except OSError:  # tasks have used up all descriptors of the machine, which does not last long
            return True
        # A killed process that has not ended yet may have started another process. The other one becomes a child of
        # this process only when the killed process ends. So the loop ends only when a search finds only children that
        # had ended before the search.
        if not orphans:
            break
        for pid in orphans:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            if _has_ended(pid):
                dead.add(pid)
    return bool(dead or orphans)


def _has_ended(child: int) -> bool:
    """Whether a child of this process has ended, reaped or not. Except on Linux the result is always True."""
    if not kernel.LINUX:
        return True
    try:
        return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _children() -> set[int]:
    """Return the process ids of the children of this thread, including those that have ended and are not reaped yet."""
    try:
        with open("/proc/thread-self/children", "rb") as file:
            return set(map(int, file.read().split()))
    except FileNotFoundError:  # a kernel without this list
        return {each.pid for each in processes() if each.parent == os.getpid()}


def remove(folder: str, until: float | None = None) -> bool:
    """Remove a folder of this user with everything in it, and return whether it is gone.

    The function tries at least once, and repeats its attempt until the time `until` (by default _PATIENCE_S from now).
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
    """Remove the content of a folder.

    The function moves between folders by descriptors. So no path becomes too long, and no call recurses. The function
    need not rename folders either: task code could already have made folders with the new names.

    A process that has the capability SETUID handles each folder as the owner of the folder, if the owner is an
    executor's user. This is necessary because task code may permit executors of other accounts to make folders in its
    own folder, and only the owners of those folders may empty them. Otherwise those folders would stay, and no executor
    could get the user id of the outer folder's owner again.
    """
    os.chmod(folder, stat.S_IRWXU)
    here = os.open(folder, _FOLDER)
    try:
        outer: list[tuple[str, list[str]]] = []  # for each folder on the way down: its name, and what is left beside it
        left = os.listdir(here)
        while left or outer:
            if not left:
                name, left = outer.pop()
                here = _enter("..", here)
                os.rmdir(name, dir_fd=here)  # this process now handles files as the owner of `here`
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
    """Open a folder below or above the open folder `here`, with all rights of its owner; close `here`."""
    if kernel.LINUX:
        there = _open_as_owner(name, here)
    else:
        os.chmod(name, stat.S_IRWXU, dir_fd=here)
        there = os.open(name, _FOLDER, dir_fd=here)
    os.close(here)
    return there


def _open_as_owner(name: str, here: int) -> int:
    # Opening with O_PATH needs no right to the folder itself. The path in /proc needs no right to the folders above
    # this folder, to which the owner of this folder may have no right.
    place = os.open(name, _FOLDER | os.O_PATH, dir_fd=here)
    try:
        owner, path = os.fstat(place).st_uid, f"/proc/self/fd/{place}"
        kernel.use_files_as(owner if is_executors(owner) else os.geteuid())
        os.chmod(path, stat.S_IRWXU)
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    finally:
        os.close(place)


def remove_from(places: Collection[str]) -> bool:
    """Remove this user's files and folders that lie directly in these folders; return whether all are gone.

    Files and folders of other users stay, and so do this user's files in folders of other users. Landlock lets
    executors make no folders in `places` except their private ones. A folder in `places` that cannot be listed is
    skipped.
    """
    me, gone, until = os.geteuid(), True, time.monotonic() + _PATIENCE_S
    _close_files(places)
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


def _close_files(places: Collection[str]) -> None:
    """Take from other users all rights to this user's files that lie directly in these folders.

    A user who may read and write a file may give it a further name. Without this function, task code of another user
    could give names to a file of an ended executor as fast as `remove_from` removes them.
    """
    for place in places:
        with suppress(OSError), os.scandir(place) as entries:
            for entry in entries:
                with suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
                        os.chmod(entry.path, 0)
