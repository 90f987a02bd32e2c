"""Broad folders: folders that contain much more than one project.

A broad folder never counts as one Python package, even if it contains an `__init__.py`.
"""

import os
import pwd
import tempfile
from functools import lru_cache
from pathlib import Path

_OF_THE_SYSTEM = (
    *("/", "/bin", "/boot", "/dev", "/dev/shm", "/etc", "/home", "/lib", "/media", "/mnt", "/opt", "/proc", "/root"),  # noqa: S108 - named, not written to
    *("/run", "/srv", "/sys", "/tmp", "/usr", "/usr/local", "/var", "/var/tmp"),  # noqa: S108 - named, not written to
    *("/Applications", "/Library", "/System", "/Users", "/Users/Shared", "/Volumes", "/private"),
)
_OF_A_HOME = ("", "Desktop", "Documents", "Downloads", "Library")


def is_broad(folder: str) -> bool:
    """Whether a folder is broad.

    These folders are broad: the user's home folder, `Downloads` and similar folders in it, and the folders above it.
    The folder for temporary files and folders of the system are also broad.
    """
    home = os.path.expanduser("~")
    return os.path.realpath(folder) in _broad(os.getuid(), home, tempfile.gettempdir())


@lru_cache(maxsize=8)
def _broad(user: int, home: str, temporary: str) -> frozenset[str]:
    homes = [home]
    above: tuple[str, ...] = ()
    try:
        entry = os.path.realpath(pwd.getpwuid(user).pw_dir)
    except KeyError:  # this user has no entry, as is usual in containers
        pass
    else:
        homes.append(entry)
        above = tuple(map(str, Path(entry).parents))
    folders = [str(Path(home, name)) for home in homes for name in _OF_A_HOME]
    return frozenset(map(os.path.realpath, [*folders, *above, *_OF_THE_SYSTEM, temporary]))
