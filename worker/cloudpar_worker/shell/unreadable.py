"""Finds paths that the operator has opened to tasks but that executors with user ids of their own cannot read."""

import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path


def unreadable(paths: Sequence[str]) -> list[str]:
    """Return the paths that an ordinary user cannot use.

    There are three reasons. First, the path does not exist. Second, its mode does not let other users read it (and
    enter it, if it is a folder). Third, the mode of a folder above it does not let other users enter that folder.
    """
    return [path for path in paths if not _is_readable(Path(path).resolve())]


def _is_readable(path: Path) -> bool:
    with suppress(OSError):  # a path that does not exist is not readable
        wanted = stat.S_IROTH | (stat.S_IXOTH if path.is_dir() else 0)
        return path.stat().st_mode & wanted == wanted and all(
            parent.stat().st_mode & stat.S_IXOTH for parent in path.parents
        )
    return False
