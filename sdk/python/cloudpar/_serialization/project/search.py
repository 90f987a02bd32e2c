"""Finds the units of a project that tasks need."""

import os
import sys
import threading
import time
from collections.abc import Iterable

from cloudpar._serialization.local_modules import LOCAL_MODULES, OWN

from .listings import LISTINGS, SETTLED_NS, Listing
from .units import Unit, folder_times, look_up

_ELSEWHERE = sys.stdlib_module_names | OWN | {"__main__", "__mp_main__"}


def reachable(names: Iterable[str]) -> dict[Unit, Listing]:
    """Return the units of these modules, and the units that their sources import directly or indirectly.

    Each comes with its files.
    """
    loaded = LOCAL_MODULES.units()
    found: dict[Unit, Listing] = {}
    pending, seen = list(names), set[str]()
    if pending:
        _TOPS.refresh()
    while pending:
        name = pending.pop()
        if name in seen or name.partition(".")[0] in _ELSEWHERE:
            continue
        seen.add(name)
        unit = loaded.get(name) or _TOPS.find(name)
        if unit is None or unit in found:
            continue
        try:
            found[unit] = LISTINGS.of(unit)
        except OSError:  # it was deleted after its import
            LOCAL_MODULES.is_deleted(name)  # logs a warning
            continue
        pending += found[unit].imports
        pending.append(unit.name.rpartition(".")[0] or unit.name)  # the parent's `__init__.py` may be another unit
    return dict(sorted(found.items()))


class _Tops:
    """Finds the units of modules, and remembers a unit if it is the same for all names with the same first word.

    `refresh` forgets them if sys.path, a folder of sys.path, or sys.meta_path has changed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._units: dict[str, Unit | None] = {}
        self._evidence: object = None

    def refresh(self) -> None:
        """Forget everything if an import might have another result now."""
        now_ns = time.time_ns()
        folders = [os.path.realpath(entry) for entry in sys.path]
        times = list(map(folder_times, folders))
        evidence = folders, times, list(map(id, sys.meta_path))
        with self._lock:
            if evidence != self._evidence:
                self._units = {}
            # A folder that was changed a moment ago may change again within the same tick of its file system's clock.
            self._evidence = evidence if all(changed < now_ns - SETTLED_NS for changed, _ in times) else None

    def find(self, name: str) -> Unit | None:
        """Do as `look_up`, but use remembered results, and return only the unit."""
        units, top = self._units, name.partition(".")[0]
        if top in units:
            return units[top]
        found = look_up(name)
        if found.is_of_top:
            units[top] = found.unit
        return found.unit


_TOPS = _Tops()
