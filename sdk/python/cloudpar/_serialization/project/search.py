"""Finds the units of a project that tasks need."""

import os
import sys
import threading
import time
from collections.abc import Iterable
from typing import NamedTuple

from cloudpar._serialization.local_modules import LOCAL_MODULES, OWN

from .files import folder_times
from .listings import LISTINGS, SETTLED_NS, Listing
from .lookup import look_up
from .units import Unit

REMEMBERED = 128
"""How many results are remembered at most."""

_ELSEWHERE = sys.stdlib_module_names | OWN | {"__main__", "__mp_main__"}


def reachable(names: Iterable[str]) -> dict[Unit, Listing]:
    """Return the units of these modules, and all units that they import directly or indirectly.

    Each unit comes with its list of files.
    """
    wanted = frozenset(names)
    if not wanted:
        return {}
    loaded, version = LOCAL_MODULES.units(), _UNITS.refresh()
    last = _LAST.get(wanted)
    # The listings contain the imports. So if they are unchanged, the search would find the same units again. In a large
    # project it takes longer than the comparison of the files.
    if last is not None and (last.loaded, last.version) == (loaded, version) and last.holds():
        return dict(last.found)
    found, complete = _search(wanted, loaded)
    if len(_LAST) >= REMEMBERED:
        _LAST.clear()
    if complete:
        _LAST[wanted] = _Result(loaded, version, found)
    return dict(found)


class _Result(NamedTuple):
    """The result of a search, and the imported units and the version of `_UNITS` at that time."""

    loaded: dict[str, Unit]
    version: int
    found: dict[Unit, Listing]

    def holds(self) -> bool:
        """Whether all files are unchanged."""
        try:
            return all(LISTINGS.of(unit) is listing for unit, listing in self.found.items())
        except OSError:  # a file was deleted
            return False


def _search(names: Iterable[str], loaded: dict[str, Unit]) -> tuple[dict[Unit, Listing], bool]:
    """Search as `reachable` does; the second result is False if a file of an imported unit is gone."""
    found: dict[Unit, Listing] = {}
    pending, seen, complete = list(names), set[str](), True
    while pending:
        name = pending.pop()
        if name in seen or name.partition(".")[0] in _ELSEWHERE:
            continue
        seen.add(name)
        unit = loaded.get(name) or _UNITS.find(name)
        if unit is None or unit in found:
            continue
        try:
            found[unit] = LISTINGS.of(unit)
        except OSError:  # the file was deleted after its import
            LOCAL_MODULES.is_deleted(name)  # logs a warning
            complete = False
            continue
        pending += found[unit].imports
        pending.append(unit.name.rpartition(".")[0] or unit.name)  # the parent's `__init__.py` may be another unit
    return dict(sorted(found.items())), complete


class _Units:
    """Finds the units of modules and remembers them.

    Usually all modules of the same top-level name belong to one unit. The unit is then remembered by this name.
    `refresh` forgets all units if sys.path, sys.meta_path, or a searched folder has changed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: tuple[dict[str, Unit | None], dict[str, Unit | None]] = {}, {}
        """The units by the first word of a module's name, if this word determines the unit; and the units by whole
        names."""
        self._path: object = None
        self._times: dict[str, tuple[int, int]] = {}
        """For each searched folder, when it had last changed."""
        self._settled = False
        self._version = 0

    def refresh(self) -> int:
        """Forget everything if an import could have another result now.

        Returns how often this has happened. While the number is the same, imports have the same results.
        """
        folders = [os.path.realpath(entry) for entry in sys.path]
        path = folders, list(map(id, sys.meta_path))
        with self._lock:
            same = path == self._path and self._settled
            if same and all(folder_times(folder) == times for folder, times in self._times.items()):
                return self._version
            self._found, self._path, self._times, self._settled = ({}, {}), path, {}, True
            self._note(folders)
            self._version += 1
            return self._version

    def find(self, name: str) -> Unit | None:
        """Return the unit of a module: a remembered one, or the one that `look_up` finds."""
        (tops, names), top = self._found, name.partition(".")[0]
        for remembered, key in ((tops, top), (names, name)):
            if key in remembered:
                return remembered[key]
        found = look_up(name)
        with self._lock:
            self._note(found.folders)
        if found.is_of_top:
            tops[top] = found.unit
        else:
            names[name] = found.unit
        return found.unit

    def _note(self, folders: Iterable[str]) -> None:
        """Record the times at which folders last changed. A folder's first record stays, to show all later changes."""
        now_ns = time.time_ns()
        for folder in folders:
            if folder not in self._times:
                self._times[folder] = folder_times(folder)
                # A folder that was changed a moment ago may change again within the same tick of its file system's
                # clock. So results of a search in such a folder are remembered only for one call.
                self._settled &= self._times[folder][0] < now_ns - SETTLED_NS


_UNITS = _Units()
_LAST: dict[frozenset[str], _Result] = {}
"""The last result for each set of names."""
