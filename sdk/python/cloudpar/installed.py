"""Where installed modules lie, as opposed to those of the user's own project."""

import os
import site
import sys
import sysconfig
from functools import cache
from pathlib import Path

PACKAGE_FOLDERS = frozenset({"site-packages", "dist-packages"})


@cache
def _folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    folders = [paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [*site.getsitepackages(), site.getusersitepackages(), os.path.dirname(os.__file__)]  # noqa: PTH120
    return tuple({os.path.realpath(folder) + os.sep for folder in folders})


def is_installed(path: str) -> bool:
    """Whether a file or folder belongs to Python or to an installed package."""
    real = os.path.realpath(path)
    return (real + os.sep).startswith(_folders()) or not PACKAGE_FOLDERS.isdisjoint(Path(real).parts)


def project_path() -> str:
    """PYTHONPATH for a process that shall find the modules of the user's own that this one finds."""
    folders = [os.path.realpath(entry) for entry in sys.path if os.path.isdir(entry or os.curdir)]  # noqa: PTH112
    own = [folder for folder in dict.fromkeys(folders) if not is_installed(folder)]
    return os.pathsep.join([*own, *filter(None, [os.environ.get("PYTHONPATH")])])
