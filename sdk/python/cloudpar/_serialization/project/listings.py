"""Lists the files of units, and lists them again only after a change.

A call of the pool needs the files of each unit that its tasks use. Listing a Python package with 20,000 files takes 0.5
s; checking that nothing has changed takes a few ms. A listing notices these changes:

- a file of code that was added, removed or changed before the call: always, since each call compares the times of each
  folder and each file of code;
- a data file that was added or removed before the call: always;
- a data file that was overwritten: always in a unit with at most `FEW_DATA_FILES` data files, otherwise by the first
  call that is at least `DATA_CHECK_S` after the last comparison.
"""

import os
import threading
import time
from collections.abc import Iterable
from importlib.machinery import EXTENSION_SUFFIXES

from .files import SOURCE_SUFFIXES, File, digest, folder_times
from .imports import of_file
from .units import Unit

FEW_DATA_FILES = 1_000
"""If a unit has at most this many data files, each call compares them."""
DATA_CHECK_S = 1.0
"""The shortest time between two comparisons of the data files of a unit with more than FEW_DATA_FILES, in seconds."""
SETTLED_NS = 2_000_000_000
"""How long a folder must have been unchanged when it was listed, so that the list is reused, in nanoseconds. Otherwise
the folder could change again within the same tick of the file system's clock, and its times would not show this change.
"""

_KEPT = 4_096


class Listing:
    """The files of a unit, and the times of files and folders that show whether they have changed."""

    def __init__(self, unit: Unit) -> None:
        self._looked_at_ns = time.time_ns()
        self._compared_at = time.monotonic()
        self._folders: dict[str, tuple[int, int]] = {}
        self.files = unit.files(self._folders)
        self.digest = digest(self.files)
        self._code = [file for file in self.files if file.is_code]
        self._data = [file for file in self.files if not file.is_code]
        sources = [file for file in self._code if file.place.endswith(SOURCE_SUFFIXES)]
        self.imports = frozenset[str]().union(*(of_file(file, _package(file)) for file in sources))
        """The modules that the unit's source files may import."""

    @property
    def is_compiled(self) -> bool:
        """Whether the unit has extension modules."""
        return any(file.place.endswith(tuple(EXTENSION_SUFFIXES)) for file in self._code)

    def holds(self) -> bool:
        """Whether the files are unchanged, with the limits that the docstring of this module describes."""
        settled_ns = self._looked_at_ns - SETTLED_NS
        if any(changed[0] > settled_ns or folder_times(folder) != changed for folder, changed in self._folders.items()):
            return False
        if not _are_same(self._code):
            return False
        now = time.monotonic()
        if len(self._data) > FEW_DATA_FILES and now - self._compared_at < DATA_CHECK_S:
            return True
        self._compared_at = now
        return _are_same(self._data)


class Listings:
    """The latest listing of each unit. Any thread may use this object."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[Unit, Listing] = {}

    def of(self, unit: Unit) -> Listing:
        """Return the current files of a unit.

        Raises:
            OSError: The unit is a single module that was removed, or the status of a file cannot be read.
        """
        with self._lock:
            known = self._known.get(unit)
            if known is not None and known.holds():
                return known
            if len(self._known) >= _KEPT:
                self._known.clear()
            listing = self._known[unit] = Listing(unit)
            return listing


def _are_same(files: Iterable[File]) -> bool:
    try:
        return all(file.is_same(os.stat(file.path)) for file in files)
    except OSError:
        return False


def _package(file: File) -> str:
    return file.place.rpartition("/")[0].replace("/", ".")


LISTINGS = Listings()
