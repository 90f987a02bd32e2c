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
"""How long to retry, in seconds. A killed process may first finish a system call that creates a file, which takes much
less.
"""


def kill_own_processes() -> None:
    """Kill all other processes of this user with one call, so that none can start another one and escape."""
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
    """Remove what a folder contains. Subfolders' entries move up first, so no path grows long and no call recurses."""
    os.chmod(folder, stat.S_IRWXU)
    number = 0
    while names := os.listdir(folder):
        for name in names:
            path = os.path.join(folder, name)
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                os.unlink(path)
                continue
            os.chmod(path, stat.S_IRWXU)
            for inner in os.listdir(path):
                number += 1
                os.rename(os.path.join(path, inner), os.path.join(folder, f".{os.getpid()}-{number}"))
            os.rmdir(path)


def remove_from(places: Collection[str]) -> bool:
    """Remove the files and folders of this user that lie directly in these folders; return whether all are gone.

    Other users' entries, and what this user owns in other users' folders, stay.
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
