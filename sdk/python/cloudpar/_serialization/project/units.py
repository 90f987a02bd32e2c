"""Units of a project: a module that lies alone, or a whole package with its data files."""

import hashlib
import logging
import os
import sys
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from cloudpar._serialization.installed import is_installed, is_listed

from .broad_folders import is_broad
from .secret_files import is_secret

DATA_FILES = 20_000
"""Data files of one unit that are looked at; those beyond are left out, with a warning. Code is never left out: without
it a worker could not import the unit, and an edit of it would go unnoticed."""

SOURCE_SUFFIXES = (".py", ".pyi")
_CODE_SUFFIXES = (*SOURCE_SUFFIXES, *EXTENSION_SUFFIXES)
_SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules"})
_NOT_SHIPPED = (".pyc", ".pyo")

log = logging.getLogger("cloudpar")
_warned = set[str]()


class File(NamedTuple):
    """One file of a unit.

    Attributes:
        place: Where an import of the unit looks for it, below a folder of sys.path, with slashes.
        path: Where it lies here.
        size: In bytes.
        changed: The times of its last changes.
        travels: Whether workers elsewhere get it. They get no code that a symbolic link leads to; but executors here
            import it, so that a change of it is a change of its unit.
    """

    place: str
    path: str
    size: int
    changed: tuple[int, int]
    travels: bool = True

    @property
    def is_code(self) -> bool:
        """Whether an import may need it."""
        return _is_code(self.place)

    def is_same(self, status: os.stat_result) -> bool:
        """Whether it has not changed, going by its status now."""
        return self.size == status.st_size and self.changed == (status.st_mtime_ns, status.st_ctime_ns)


class Unit(NamedTuple):
    """A module that lies alone, or a package, by its name and the path of its file or folder.

    The `__init__.py` of a folder that is no package as a whole (see `broad_folders`) lies alone, too.
    """

    name: str
    path: str

    @property
    def place(self) -> str:
        """Where an import looks for it, below a folder of sys.path."""
        parent = self.name.rpartition(".")[0].replace(".", "/")
        name = Path(self.path).name
        if name == "__init__.py":
            parent = self.name.replace(".", "/")
        return f"{parent}/{name}" if parent else name

    @property
    def folder(self) -> str | None:
        """The folder that has to be in sys.path for an import to find it; None: its importer works in another way."""
        expected = self.name.replace(".", "/")
        stem = self.place.removesuffix("/__init__.py").partition(".")[0]
        ending = os.sep + self.place.replace("/", os.sep)
        return self.path.removesuffix(ending) if stem == expected and self.path.endswith(ending) else None

    def files(self, folders: dict[str, tuple[int, int]] | None = None) -> list[File]:
        """All that belongs to it: no caches, nothing hidden, no secrets, and of symbolic links only code.

        Args:
            folders: Gets the folders that were looked into, with the times of their last changes.
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
        """The paths of the files that are left out since they may hold secrets."""
        return [entry.path for place, entry, _ in _Walk({}).entries(self.path, self.place) if _stays(place)]


def digest(files: list[File]) -> str:
    """What changes with any change of any of these files."""
    text = "\n".join(f"{file.place}\t{file.path}\t{file.size}\t{file.changed}" for file in files)
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:32]


def _is_code(place: str) -> bool:
    return place.endswith(_CODE_SUFFIXES)


def folder_times(folder: str) -> tuple[int, int]:
    """When the content of a folder changed last, in nanoseconds; -1 if it is not there.

    The second time is the system's own: copying programs set the first one back.
    """
    try:
        status = os.stat(folder)
    except OSError:
        return -1, -1
    return status.st_mtime_ns, status.st_ctime_ns


class _Walk:
    """One look through the folder of a unit.

    Args:
        folders: Gets the folders that are looked into, with the times of their last changes.
    """

    def __init__(self, folders: dict[str, tuple[int, int]]) -> None:
        self._folders = folders
        self._linked = set[str]()
        """The real paths of linked packages: their links may lead in a circle."""

    def entries(self, folder: str, place: str, *, travels: bool = True) -> Iterator[tuple[str, os.DirEntry[str], bool]]:
        """The files with their places, and whether workers elsewhere get them."""
        try:
            self._folders[folder] = folder_times(folder)  # before it is read: it may change meanwhile
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
        """Whether a link leads to a package; a folder of data may be huge."""
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
    """The unit that a module of the project belongs to; None: no import would find this module by its name."""
    file = os.path.realpath(getattr(module, "__file__", None) or "")
    unit = find_unit(module.__name__)
    if unit is None:
        return None
    real = os.path.realpath(unit.path)
    return unit if file == real or file.startswith(real + os.sep) else None


def find_unit(name: str) -> Unit | None:
    """Look for a module by its name, as an import would, and import nothing; None: it is not there, or installed."""
    return look_up(name).unit


class Found(NamedTuple):
    """Where a module was found.

    Attributes:
        unit: None: it is not there, or installed.
        is_of_top: All modules whose names begin with the same word are of this unit.
    """

    unit: Unit | None
    is_of_top: bool


def look_up(name: str) -> Found:
    """See `find_unit`."""
    path: Any = None
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        spec = _find_spec(".".join(parts[:end]), path)
        if spec is None:
            return Found(None, end == 1)
        path = spec.submodule_search_locations
        if spec.has_location and spec.origin is not None and not _is_broad_package(spec):
            return Found(_project_unit(spec.name, spec.origin, path is not None), end == 1)
        if spec.has_location and spec.origin is not None and end == len(parts):
            return Found(_project_unit(spec.name, spec.origin, False), False)
        if path is None:
            break  # built in, or made by an importer of another kind
    return Found(None, False)  # or a namespace, which has no file of its own


def _project_unit(name: str, origin: str, is_package: bool) -> Unit | None:
    if not os.path.isfile(origin) or is_installed(origin) or is_listed(name, origin):
        return None
    return Unit(name, os.path.dirname(origin) if is_package else origin)


def _is_broad_package(spec: ModuleSpec) -> bool:
    """Whether modules of a package are units of their own, since its folder holds much else."""
    return any(map(is_broad, spec.submodule_search_locations or ()))


def _find_spec(name: str, path: Any) -> ModuleSpec | None:
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        try:
            spec = find(name, path, None) if find else None
        except Exception:  # noqa: BLE001, S112 - finders are anybody's
            continue
        if spec is not None:
            return spec  # type: ignore[no-any-return]
    return None
