"""The files of units, listed once and again only when something has changed.

Each call of the pool needs them. To list a package with 20,000 files takes 0.5 s, and to see that nothing has changed
takes a few ms. What counts as seen:

- a file of code that was added, removed or changed before the call, always: the time of each folder and of each file of
  code is compared;
- a data file that was added or removed before the call, always; one that was written over, in a package with at most
  `FEW_DATA_FILES` data files always, and in a larger one after `DATA_CHECK_S` at the latest.
"""

import os
import threading
import time
from collections.abc import Iterable
from importlib.machinery import EXTENSION_SUFFIXES

from .imports import of_file
from .units import SOURCE_SUFFIXES, File, Unit, digest, folder_times

FEW_DATA_FILES = 1_000
"""So many data files of a unit are compared at each call."""
DATA_CHECK_S = 1.0
"""More data files are compared so often at most, in seconds."""
SETTLED_NS = 2_000_000_000
"""A folder that changed less than this before it was listed may have changed again within the same tick of its file
system's clock, in nanoseconds; so it is listed again."""

_KEPT = 4_096


class Listing:
    """The files of a unit, and what must be as it was for them to be the same."""

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
        """The modules that the sources may import."""

    @property
    def is_compiled(self) -> bool:
        """Whether there are extension modules."""
        return any(file.place.endswith(tuple(EXTENSION_SUFFIXES)) for file in self._code)

    def holds(self) -> bool:
        """Whether nothing has changed; see the module."""
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
    """The listings of units that were looked at. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[Unit, Listing] = {}

    def of(self, unit: Unit) -> Listing:
        """The files of a unit as they are now.

        Raises:
            OSError: A module that lies alone has just been removed.
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
