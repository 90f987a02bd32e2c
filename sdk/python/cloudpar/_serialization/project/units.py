"""A unit of a project is a single module, or a whole Python package with its data files."""

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from .files import File, Walk, is_code
from .secret_files import is_secret

DATA_FILES = 20_000
"""How many data files of one unit are considered. Further data files are left out, with a warning. Code files are never
left out: without them a worker could not import the unit, and their changes would go unnoticed.
"""

log = logging.getLogger("cloudpar")
_warned = set[str]()


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

        The list leaves out virtual environments and `node_modules` inside the unit, and data files beyond DATA_FILES.

        Args:
            folders: Receives the folders that were searched, with the times of their last changes.

        Raises:
            OSError: The unit is a single module that was removed, or the status of a file cannot be read.
        """
        if not os.path.isdir(self.path):
            return [File.of(self.place, self.path, os.stat(self.path))]
        found: list[File] = []
        data = 0
        for place, entry, travels in Walk({} if folders is None else folders).entries(self.path, self.place):
            if _stays(place):
                continue
            data += not is_code(place)
            if data <= DATA_FILES or is_code(place):
                with suppress(FileNotFoundError):  # the file was just removed, like an editor's temporary files
                    found.append(File.of(place, entry.path, entry.stat(), travels=travels))
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
        return [entry.path for place, entry, _ in Walk({}).entries(self.path, self.place) if _stays(place)]


def _stays(place: str) -> bool:
    return not is_code(place) and is_secret(place)
