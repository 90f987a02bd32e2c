"""Decides which modules are installed, and which belong to the user's own project."""

import os
import site
import sys
import sysconfig
from functools import cache, lru_cache
from importlib.metadata import distributions
from pathlib import Path

PACKAGE_FOLDERS = frozenset({"site-packages", "dist-packages"})


@cache
def _folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    folders = [paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [*site.getsitepackages(), site.getusersitepackages(), os.path.dirname(os.__file__)]
    return tuple({os.path.realpath(folder) + os.sep for folder in folders})


def is_installed(path: str) -> bool:
    """Whether a file or folder belongs to Python or to an installed package."""
    return _is_installed(os.path.realpath(path))


@lru_cache(maxsize=1024)
def _is_installed(real: str) -> bool:
    return (real + os.sep).startswith(_folders()) or not PACKAGE_FOLDERS.isdisjoint(Path(real).parts)


def is_listed(name: str, file: str) -> bool:
    """Whether a distribution in the module's folder lists the module among its files.

    This is so after `pip install --target`. The module's folder is the folder that must be in sys.path for an import of
    the module. Only the part of the module's name before the first dot is compared.

    Args:
        name: The module's name, such as "numpy.linalg".
        file: The module's file.
    """
    folder = os.path.realpath(file)
    for _ in range(name.count(".") + 1 + (Path(file).name.partition(".")[0] == "__init__")):
        folder = os.path.dirname(folder)
    try:
        changed_ns = os.stat(folder).st_mtime_ns
    except OSError:
        return False
    return name.partition(".")[0] in _listed(folder, changed_ns)


@lru_cache(maxsize=256)
def _listed(folder: str, _changed_ns: int) -> frozenset[str]:
    """The top-level modules of the distributions in a folder. A distribution without a RECORD is left out.

    An editable install leaves such a distribution in the project's own folder.
    """
    names = set[str]()
    for distribution in distributions(path=[folder]):
        if distribution.read_text("RECORD") is not None:
            names |= {file.parts[0].partition(".")[0] for file in distribution.files or () if len(file.parts)}
    return frozenset(names)


def project_path() -> list[str]:
    """The folders in which this process finds modules that are not installed, in the order of `sys.path`."""
    folders = [os.path.realpath(entry) for entry in sys.path if os.path.exists(entry or os.curdir)]
    return [folder for folder in dict.fromkeys(folders) if not _is_installed(folder)]
