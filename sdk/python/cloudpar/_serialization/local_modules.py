"""Finds the local modules: those that belong to the user's own project.

Workers are expected to have the standard library and installed packages. All other modules that were imported from a
file are local, except `__main__` and the packages of this project (OWN). If an import finds a local module by its name,
executors also import the module: from its folder on this machine, or from files that are sent with the task code
(`project`). If no import finds it, for example because it was loaded from a path, the module is pickled by value. (This
has the effect of cloudpickle's `register_pickle_by_value`, but users need not name the modules.)
"""

import contextlib
import logging
import operator
import os
import sys
import threading
from collections.abc import Iterator
from types import ModuleType

import cloudpickle

from .installed import is_installed, is_listed
from .project.listings import LISTINGS
from .project.lookup import unit_of
from .project.units import Unit

OWN = frozenset({"cloudpar", "cloudpar_protocol", "cloudpar_worker", "cloudpar_master"})
"""The Python packages of Cloud Parallelizer itself. They are not sent as local modules, because a worker has its own
copies of those that it needs.
"""


_SPAWNED_MAIN = "__mp_main__"
"""The name that `multiprocessing` gives to the script's module in a spawned process. The module is also `__main__`
there.
"""

log = logging.getLogger("cloudpar")


def is_local(module: object) -> bool:
    """Whether a module comes from a file of the user's own project; False for `__main__`, True for `__mp_main__`."""
    name = getattr(module, "__name__", None)
    if not isinstance(module, ModuleType) or not isinstance(name, str):
        return False
    if name == _SPAWNED_MAIN:
        return True  # like `__main__`, a worker cannot import the script's module
    if name == "__main__" or name.partition(".")[0] in OWN:
        return False
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and not is_installed(file) and not is_listed(name, file)


class LocalModules:
    """Finds the local modules in sys.modules. Each search looks only at modules that are new since the last search."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._known: dict[str, int] = {}
        self._seen: tuple[int, str] = 0, ""
        self._local: dict[str, ModuleType] = {}
        self._units: dict[str, Unit] = {}
        self._strays: dict[str, ModuleType] = {}
        self._deleted: dict[str, ModuleType] = {}
        """The local modules whose files are gone."""
        self._users = 0
        self._registered: list[ModuleType] = []

    def find(self) -> dict[str, ModuleType]:
        """Return the local modules by name."""
        with self._lock:  # without the lock, a thread that calls this during a search would get the old list
            now = len(sys.modules), next(reversed(sys.modules))
            # `now` may be unchanged although a module was removed from sys.modules and imported again, perhaps from
            # another folder.
            same = map(operator.is_, map(sys.modules.get, self._local), self._local.values())
            if now != self._seen or not all(same):
                self._seen = now
                modules = dict(sys.modules)
                local = {
                    name: module
                    for name, module in modules.items()
                    if (name in self._local and self._known[name] == id(module))
                    or (self._known.get(name) != id(module) and is_local(module) and module.__name__ == name)
                }
                self._sort(local)
                self._known = {name: id(module) for name, module in modules.items()}
                self._local = local
            return self._local

    def _sort(self, local: dict[str, ModuleType]) -> None:
        """Divide `local` into modules that another process finds by name, and modules that it does not find."""
        for name, module in local.items():
            if self._local.get(name) is not module:
                unit = None if name == _SPAWNED_MAIN else unit_of(module)
                if unit is None:
                    self._units.pop(name, None)
                else:
                    self._units[name] = unit
        self._deleted = {name: module for name, module in self._deleted.items() if local.get(name) is module}
        self._find_strays(local)

    def _find_strays(self, local: dict[str, ModuleType]) -> None:
        found = self._units.keys() - self._deleted.keys()
        self._strays = {name: module for name, module in local.items() if name not in found}

    def strays(self) -> dict[str, ModuleType]:
        """Return the local modules that no other process finds by name."""
        with self._lock:
            self.find()
            return self._strays

    def units(self) -> dict[str, Unit]:
        """Return the imported units of the project, by the names of their modules."""
        with self._lock:
            self.find()
            return dict(self._units)

    def is_deleted(self, name: str) -> bool:
        """Whether the file of a project's module is gone. Such a module is pickled by value, since no import finds it.

        The first call for such a module logs a warning, and registers the module for all contexts of `by_value`.

        Args:
            name: The module's name. A module that was imported since the last `find` counts as not deleted.
        """
        if name in self._deleted:
            return True
        module = self._local.get(name)
        if module is None or name not in self._units or _has_file(module):
            return False
        with self._lock:
            self._deleted[name] = module
            self._find_strays(self._local)
            if self._users:
                cloudpickle.register_pickle_by_value(module)
                self._registered.append(module)
        log.warning(
            "cloudpar: the file of the module %s is gone (%s). Tasks get its functions and classes as they were "
            "imported here, but cannot import it: put it back, or import it again if it was moved.",
            name, module.__file__,
        )  # fmt: skip
        return True

    def _look_for_deleted(self) -> None:
        """If the deleted file of a module exists again, let the module be pickled by name again."""
        there = [name for name, module in self._deleted.items() if _has_file(module)]
        if there:
            for name in there:
                del self._deleted[name]
            self._find_strays(self._local)

    @contextlib.contextmanager
    def by_value(self, *, everything: bool = False) -> Iterator[None]:
        """Inside this context, cloudpickle pickles by value the local modules that no import finds.

        Modules that the user has registered with cloudpickle stay registered.

        Args:
            everything: Whether to pickle the other local modules by value, too, except those with compiled parts.
        """
        with self._lock:
            self._users += 1
            self.find()
            self._look_for_deleted()
            already = cloudpickle.list_registry_pickle_by_value()
            wanted = self._plain() if everything else self._strays
            fresh = [module for name, module in wanted.items() if name not in already and name in sys.modules]
            for module in fresh:
                cloudpickle.register_pickle_by_value(module)
            self._registered += fresh
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    for module in self._registered:
                        with contextlib.suppress(ValueError):  # the user has unregistered it
                            cloudpickle.unregister_pickle_by_value(module)
                    self._registered.clear()

    def _plain(self) -> dict[str, ModuleType]:
        local = self.find()
        compiled = {unit for unit in set(self._units.values()) if _is_compiled(unit)}
        return {name: module for name, module in local.items() if self._units.get(name) not in compiled}


def _has_file(module: ModuleType) -> bool:
    return os.path.exists(module.__file__ or "")


def _is_compiled(unit: Unit) -> bool:
    try:
        return LISTINGS.of(unit).is_compiled
    except OSError:  # the file was deleted after the import
        return False


LOCAL_MODULES = LocalModules()
