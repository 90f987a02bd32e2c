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

from cloudpar.installed import is_installed, is_listed

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
    """

    place: str
    path: str
    size: int
    changed: tuple[int, int]

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

    def files(self, folders: dict[str, int] | None = None) -> list[File]:
        """All that belongs to it: no symbolic links, no caches, nothing hidden, and no secrets.

        Args:
            folders: Gets the folders that were looked into, with the times of their last changes.
        """
        if not os.path.isdir(self.path):  # noqa: PTH112
            return [_file(self.place, self.path, os.stat(self.path))]  # noqa: PTH116
        found: list[File] = []
        data = 0
        for place, entry in _walk(self.path, self.place, {} if folders is None else folders):
            if _stays(place):
                continue
            data += not _is_code(place)
            if data <= DATA_FILES or _is_code(place):
                found.append(_file(place, entry.path, entry.stat()))
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
        return [entry.path for place, entry in _walk(self.path, self.place, {}) if _stays(place)]


def digest(files: list[File]) -> str:
    """What changes with any change of any of these files."""
    text = "\n".join(f"{file.place}\t{file.path}\t{file.size}\t{file.changed}" for file in files)
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:32]


def _is_code(place: str) -> bool:
    return place.endswith(_CODE_SUFFIXES)


def _walk(folder: str, place: str, folders: dict[str, int]) -> Iterator[tuple[str, os.DirEntry[str]]]:
    try:
        folders[folder] = os.stat(folder).st_mtime_ns  # noqa: PTH116 - before it is read: it may change meanwhile
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    if any(entry.name == "pyvenv.cfg" for entry in entries):
        return
    for entry in entries:
        name = entry.name
        if name.startswith(".") or entry.is_symlink():
            continue
        if entry.is_dir():
            if name not in _SKIPPED_FOLDERS:
                yield from _walk(entry.path, f"{place}/{name}", folders)
        elif entry.is_file() and not name.endswith(_NOT_SHIPPED):
            yield f"{place}/{name}", entry


def _stays(place: str) -> bool:
    return not _is_code(place) and is_secret(place)


def _file(place: str, path: str, status: os.stat_result) -> File:
    return File(place, path, status.st_size, (status.st_mtime_ns, status.st_ctime_ns))


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
    if not os.path.isfile(origin) or is_installed(origin) or is_listed(name, origin):  # noqa: PTH113
        return None
    return Unit(name, os.path.dirname(origin) if is_package else origin)  # noqa: PTH120


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
