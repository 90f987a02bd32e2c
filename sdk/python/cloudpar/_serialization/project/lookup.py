"""Finds the unit of a module by the module's name."""

import os
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NamedTuple

from cloudpar._serialization.installed import is_installed, is_listed

from .broad_folders import is_broad
from .units import Unit


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
    return Found(None, False, folders)  # this also covers a namespace package, which has no file of its own


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
