"""The files of a project, and the search through a folder for them."""

import hashlib
import os
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from typing import NamedTuple

SOURCE_SUFFIXES = (".py", ".pyi")
_CODE_SUFFIXES = (*SOURCE_SUFFIXES, *EXTENSION_SUFFIXES)
_SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules"})
_NOT_SHIPPED = (".pyc", ".pyo")


class File(NamedTuple):
    """One file of a unit.

    Attributes:
        place: The path that an import searches for, relative to a folder of sys.path, with slashes.
        path: The path on this machine.
        size: The size in bytes.
        changed: The times of the last change of its content and of its inode (mtime and ctime), in nanoseconds.
        travels: Whether workers on other machines get the file. They do not get code behind a symbolic link inside a
            Python package. But executors on this machine import such code, so its changes count as changes of the unit.
    """

    place: str
    path: str
    size: int
    changed: tuple[int, int]
    travels: bool = True

    @property
    def is_code(self) -> bool:
        """Whether an import may need the file."""
        return is_code(self.place)

    def is_same(self, status: os.stat_result) -> bool:
        """Whether the file is unchanged, judged by its current status."""
        return self.size == status.st_size and self.changed == (status.st_mtime_ns, status.st_ctime_ns)

    @classmethod
    def of(cls, place: str, path: str, status: os.stat_result, *, travels: bool = True) -> "File":
        """Return a file with the size and the times in its status."""
        return cls(place, path, status.st_size, (status.st_mtime_ns, status.st_ctime_ns), travels)


def is_code(place: str) -> bool:
    """Whether an import may need the file with this place (see File)."""
    return place.endswith(_CODE_SUFFIXES)


def digest(files: list[File]) -> str:
    """A hash that changes with any change of any of these files."""
    text = "\n".join(f"{file.place}\t{file.path}\t{file.size}\t{file.changed}" for file in files)
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:32]


class Walk:
    """One search through the folder of a unit.

    Args:
        folders: Receives the folders that are searched, with the times of their last changes.
    """

    def __init__(self, folders: dict[str, tuple[int, int]]) -> None:
        self._folders = folders
        self._linked = set[str]()
        """The real paths of the Python packages that the search has reached by symbolic links. Without this record, the
        search would follow a circle of links without end.
        """

    def entries(self, folder: str, place: str, *, travels: bool = True) -> Iterator[tuple[str, os.DirEntry[str], bool]]:
        """Yield each file with its place (see File), and whether workers on other machines get it."""
        try:
            self._folders[folder] = folder_times(folder)  # before reading it, so that later changes are noticed
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            return
        if any(entry.name == "pyvenv.cfg" for entry in entries):
            return
        for entry in entries:
            name, below = entry.name, f"{place}/{entry.name}"
            goes = travels and not entry.is_symlink()
            if name.startswith("."):
                continue
            if entry.is_dir():
                if name not in _SKIPPED_FOLDERS and (not entry.is_symlink() or self._is_new_package(entry.path)):
                    yield from self.entries(entry.path, below, travels=goes)
            elif entry.is_file() and not name.endswith(_NOT_SHIPPED) and (goes or is_code(name)):
                yield below, entry, goes

    def _is_new_package(self, link: str) -> bool:
        """Whether a symbolic link leads to a Python package that was not searched yet.

        Other links to folders are not followed.
        """
        real = os.path.realpath(link)
        if real in self._linked or not os.path.isfile(f"{real}/__init__.py"):
            return False
        self._linked.add(real)
        return True


def folder_times(folder: str) -> tuple[int, int]:
    """The times of the last change of a folder's content and of its inode, in nanoseconds.

    Both are -1 if the folder's status cannot be read.

    Programs that copy files may set the first time to an older value, but not the second.
    """
    try:
        status = os.stat(folder)
    except OSError:
        return -1, -1
    return status.st_mtime_ns, status.st_ctime_ns
