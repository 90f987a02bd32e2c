"""Removes what task code leaves behind: processes and files."""

import os
import signal
import stat
import time
from collections.abc import Collection
from contextlib import suppress
from typing import Final

from .processes import processes

_PATIENCE_S: Final = 5.0
"""How long `remove` tries again, in seconds. A killed process may still finish a system call that creates a file, which
takes much less time.
"""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def kill_own_processes() -> None:
    """Kill all other processes of this user with one call, so that none of them can start another that escapes."""
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)


def kill_orphans(mine: Collection[int]) -> bool:
    """Kill the children of this process that are not in `mine`, and return whether there were any."""
    orphans = [each.pid for each in processes() if each.parent == os.getpid() and each.pid not in mine]
    for pid in orphans:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(orphans)


def remove(folder: str) -> bool:
    """Remove a folder of this user with everything in it, and return whether it is gone."""
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until:
        with suppress(OSError):
            _empty(folder)
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            return True
        except OSError:
            time.sleep(0.002)
    return not os.path.lexists(folder)


def _empty(folder: str) -> None:
    """Remove what a folder contains.

    It goes down and up by descriptors. So no path grows too long, no call recurses, and nothing is renamed: task code
    could have prepared folders with the names that a renaming would need.
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
                os.rmdir(name, dir_fd=here)
                continue
            name = left.pop()
            if not stat.S_ISDIR(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=here)
                continue
            os.chmod(name, stat.S_IRWXU, dir_fd=here)
            here = _enter(name, here)
            outer.append((name, left))
            left = os.listdir(here)
    finally:
        os.close(here)


def _enter(name: str, here: int) -> int:
    """Open a folder beside or above an open one, and close that one."""
    there = os.open(name, _FOLDER, dir_fd=here)
    os.close(here)
    return there


def remove_from(places: Collection[str]) -> bool:
    """Remove the files and folders of this user that lie directly in these folders; return whether all are gone.

    Other users' entries, and what this user owns in other users' folders, stay. A folder in `places` that cannot be
    listed is skipped.
    """
    me, gone = os.geteuid(), True
    for place in places:
        with suppress(OSError), os.scandir(place) as entries:
            for entry in entries:
                try:
                    if entry.stat(follow_symlinks=False).st_uid != me:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        gone = remove(entry.path) and gone
                    else:
                        os.unlink(entry.path)
                except FileNotFoundError:
                    continue
                except OSError:
                    gone = False
    return gone
