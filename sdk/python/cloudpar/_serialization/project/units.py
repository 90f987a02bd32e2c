"""A unit of a project is a single module, or a whole Python package with its data files."""

import hashlib
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from cloudpar._serialization.installed import is_installed, is_listed

from .broad_folders import is_broad
from .secret_files import is_secret

DATA_FILES = 20_000
"""How many data files of one unit are considered. Further data files are left out, with a warning. Code files are never
left out: without them a worker could not import the unit, and their changes would go unnoticed.
"""

SOURCE_SUFFIXES = (".py", ".pyi")
_CODE_SUFFIXES = (*SOURCE_SUFFIXES, *EXTENSION_SUFFIXES)
_SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules"})
_NOT_SHIPPED = (".pyc", ".pyo")

log = logging.getLogger("cloudpar")
_warned = set[str]()


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
        return _is_code(self.place)

    def is_same(self, status: os.stat_result) -> bool:
        """Whether the file is unchanged, judged by its current status."""
        return self.size == status.st_size and self.changed == (status.st_mtime_ns, status.st_ctime_ns)


class Unit(NamedTuple):
    """A single module or a whole Python package: its name, and the path of its file or folder.

    The `__init__.py` of a folder that does not count as one Python package (see `broad_folders`) is a single module.
    """

    name: str
    path: str

    @property
    def place(self) -> str:
        """The path that an import searches for, relative to a folder of sys.path."""
        parent = self.name.rpartition(".")[0].replace(".", "/")
        name = Path(self.path).name
        if name == "__init__.py":
            parent = self.name.replace(".", "/")
        return f"{parent}/{name}" if parent else name

    @property
    def folder(self) -> str | None:
        """The folder that must be in sys.path for an import to find the unit.

        None if the unit's path does not end with the unit's name: its importer does not search folders for names.
        """
        expected = self.name.replace(".", "/")
        stem = self.place.removesuffix("/__init__.py").partition(".")[0]
        ending = os.sep + self.place.replace("/", os.sep)
        return self.path.removesuffix(ending) if stem == expected and self.path.endswith(ending) else None

    def files(self, folders: dict[str, tuple[int, int]] | None = None) -> list[File]:
        """List the unit's files, without caches, hidden files and secrets. Behind symbolic links, list only code.

        Virtual environments and `node_modules` inside the unit are left out, and so are data files beyond DATA_FILES.

        Args:
            folders: Receives the folders that were searched, with the times of their last changes.

        Raises:
            OSError: The unit is a single module that was removed, or the status of a file cannot be read.
        """
        if not os.path.isdir(self.path):
            return [_file(self.place, self.path, os.stat(self.path))]
        found: list[File] = []
        data = 0
        for place, entry, travels in _Walk({} if folders is None else folders).entries(self.path, self.place):
            if _stays(place):
                continue
            data += not _is_code(place)
            if data <= DATA_FILES or _is_code(place):
                with suppress(FileNotFoundError):  # the file was just removed, like an editor's temporary files
                    found.append(_file(place, entry.path, entry.stat(), travels=travels))
        if data > DATA_FILES and self.path not in _warned:
            _warned.add(self.path)
            log.warning(
                "cloudpar: %s has %d data files, and only %d of a package travel to workers elsewhere. A call may look "
                "at all of them: keep them outside of the package.",
                self.path, data, DATA_FILES,
            )  # fmt: skip
        return sorted(found)

    def secrets(self) -> list[str]:
        """The paths of the files that are left out because they may contain secrets."""
        return [entry.path for place, entry, _ in _Walk({}).entries(self.path, self.place) if _stays(place)]


def digest(files: list[File]) -> str:
    """A hash that changes with any change of any of these files."""
    text = "\n".join(f"{file.place}\t{file.path}\t{file.size}\t{file.changed}" for file in files)
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:32]


def _is_code(place: str) -> bool:
    return place.endswith(_CODE_SUFFIXES)


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


class _Walk:
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
            elif entry.is_file() and not name.endswith(_NOT_SHIPPED) and (goes or _is_code(name)):
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


def _stays(place: str) -> bool:
    return not _is_code(place) and is_secret(place)


def _file(place: str, path: str, status: os.stat_result, *, travels: bool = True) -> File:
    return File(place, path, status.st_size, (status.st_mtime_ns, status.st_ctime_ns), travels)


def unit_of(module: ModuleType) -> Unit | None:
    """The unit of a project's module; None if no import finds the module by its name."""
    file = os.path.realpath(getattr(module, "__file__", None) or "")
    unit = look_up(module.__name__).unit
    if unit is None:
        return None
    real = os.path.realpath(unit.path)
    return unit if file == real or file.startswith(real + os.sep) else None


class Found(NamedTuple):
    """The result of a search for a module.

    Attributes:
        unit: The module's unit; None if the module does not exist, is installed, or has no file.
        is_of_top: Whether this result holds for all modules with the same top-level name.
        folders: The folders that were searched in addition to those in sys.path, such as the parts of a namespace
            package.
    """

    unit: Unit | None
    is_of_top: bool
    folders: tuple[str, ...] = ()


def look_up(name: str) -> Found:
    """Find a module by its name, as an import does, without importing it."""
    path: Any = None
    folders: tuple[str, ...] = ()
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        spec = _find_spec(".".join(parts[:end]), path)
        if spec is None:
            return Found(None, end == 1, folders)
        path = spec.submodule_search_locations
        if spec.has_location and spec.origin is not None and not _is_broad_package(spec):
            return Found(_project_unit(spec.name, spec.origin, path is not None), end == 1, folders)
        if spec.has_location and spec.origin is not None and end == len(parts):
            return Found(_project_unit(spec.name, spec.origin, False), False, folders)
        if path is None:
            break  # built in, or loaded by an importer without files
        folders = (*folders, *path)
    return Found(None, False, folders)  # or a namespace package, which has no file of its own


def _project_unit(name: str, origin: str, is_package: bool) -> Unit | None:
    if not os.path.isfile(origin) or is_installed(origin) or is_listed(name, origin):
        return None
    return Unit(name, os.path.dirname(origin) if is_package else origin)


def _is_broad_package(spec: ModuleSpec) -> bool:
    """Whether the modules of a Python package are separate units, because the folder of the package is broad."""
    return any(map(is_broad, spec.submodule_search_locations or ()))


def _find_spec(name: str, path: Any) -> ModuleSpec | None:
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        try:
            spec = find(name, path, None) if find else None
        except Exception:  # noqa: BLE001, S112 - any library may add a finder, which may raise anything
            continue
        if spec is not None:
            return spec  # type: ignore[no-any-return]
    return None
