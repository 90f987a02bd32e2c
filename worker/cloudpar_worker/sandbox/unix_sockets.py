"""Finds Unix sockets of other programs to which every user of the machine may connect, such as the system's D-Bus.

A program that listens on such a socket may do things for a task that the task itself may not do.
"""

import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from . import landlock

PLACES: Final = ("/run", "/tmp", "/var/tmp", "/dev")  # noqa: S108 - programs have their sockets in these folders
"""The folders to search. The kernel's list also names sockets in other folders, unless another container or network
namespace listens on them.
"""

ENTRIES: Final = 5_000
"""The most files and folders to examine below one of PLACES; those nearest to it come first. This limit bounds the time
of a worker's start, for example with a full /tmp.
"""

_LISTED: Final = "/proc/net/unix"
_ACCEPTS: Final = 0x10000
"""The flag of sockets that accept connections, in the kernel's list of sockets."""
_DATAGRAM: Final = "0002"


def open_sockets() -> list[str]:
    """Return this machine's sockets to which every user may connect, except those that Landlock closes to tasks."""
    return reachable(abstract=landlock.version() < landlock.SCOPED)


def reachable(*, abstract: bool, places: Iterable[str] = PLACES, listed: str = _LISTED) -> list[str]:
    """Return the sockets to which every user may connect, in the order of their names.

    Any program can choose the name of its socket, so each character of a name that cannot be printed becomes a question
    mark.

    Args:
        abstract: Whether to include sockets without a path. Their names start with @.
        places: The folders to search.
        listed: The kernel's list of sockets.
    """
    named = list(_named(listed))
    found = {name for name in named if name.startswith("@")} if abstract else set()
    found.update(name for name in named if name.startswith("/") and _is_open(Path(name)))
    for place in places:
        if all(_may_enter(folder) for folder in (Path(place), *Path(place).parents)):
            found.update(_below(place))
    return sorted({"".join(char if char.isprintable() else "?" for char in name) for name in found})


def _named(listed: str) -> Iterator[str]:
    """Yield the names of the sockets in the kernel's list to which a process can connect."""
    lines: Sequence[str] = []
    with suppress(OSError):  # not Linux, or the list is hidden
        lines = Path(listed).read_text(errors="surrogateescape").split("\n")[1:]
    for line in lines:
        fields = line.split(maxsplit=7)
        with suppress(ValueError):  # a name with a line feed makes further lines in the kernel's list
            if len(fields) == 8 and (int(fields[3], 16) & _ACCEPTS or fields[4] == _DATAGRAM):
                yield fields[7]


def _below(place: str) -> Iterator[str]:
    left, folders = ENTRIES, deque([place])
    while folders:
        with suppress(OSError), os.scandir(folders.popleft()) as entries:
            for entry in entries:
                left -= 1
                if left < 0:
                    return
                mode = _mode(entry)
                if stat.S_ISDIR(mode) and mode & stat.S_IXOTH:
                    folders.append(entry.path)
                elif _accepts_all(mode):
                    yield entry.path


def _mode(entry: os.DirEntry[str]) -> int:
    """Return the mode of an entry; 0 if it was removed meanwhile, so that the search goes on with the others."""
    with suppress(OSError):
        # A symbolic link may lead back to a folder above it, and the search would examine the same files until ENTRIES
        # is reached.
        return entry.stat(follow_symlinks=False).st_mode
    return 0


def _is_open(path: Path) -> bool:
    with suppress(OSError):  # the socket was removed, or is in another container
        return _accepts_all(path.stat().st_mode) and all(map(_may_enter, path.parents))
    return False


def _may_enter(folder: Path) -> bool:
    with suppress(OSError):
        return bool(folder.stat().st_mode & stat.S_IXOTH)
    return False


def _accepts_all(mode: int) -> bool:
    return stat.S_ISSOCK(mode) and bool(mode & stat.S_IWOTH)
