"""Which modules exist only in the client's project, and therefore travel with the code that uses them.

Installed packages and the standard library are expected at the workers; everything else that was imported from a
file is not. (The idea of cloudpickle's `register_pickle_by_value`, without having to name the modules.)
"""

import contextlib
import sys
import threading
from collections.abc import Iterator
from types import ModuleType

import cloudpickle

from .installed import is_installed

OWN = frozenset({"cloudpar", "cloudpar_protocol", "cloudpar_worker", "cloudpar_master"})
"""Present wherever a task runs."""


def is_local(module: object) -> bool:
    """Whether a module comes from a file of the user's own project."""
    name = getattr(module, "__name__", None)
    if not isinstance(module, ModuleType) or not isinstance(name, str):
        return False
    if name in {"__main__", "__mp_main__"} or name.partition(".")[0] in OWN:
        return False
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and not is_installed(file)


class LocalModules:
    """The local ones among sys.modules; looks only at modules that are new since the last time."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._known: set[str] = set()
        self._seen: tuple[int, str] = 0, ""
        self._local: dict[str, ModuleType] = {}
        self._users = 0
        self._registered: list[ModuleType] = []

    def find(self) -> dict[str, ModuleType]:
        """Local modules by name."""
        with self._lock:  # whoever comes while another looks would find what was known before
            now = len(sys.modules), next(reversed(sys.modules))
            if now != self._seen:
                self._seen = now
                modules = dict(sys.modules)
                self._local = {
                    name: module
                    for name, module in modules.items()
                    if name in self._local or (name not in self._known and is_local(module) and module.__name__ == name)
                }
                self._known = set(modules)
            return self._local

    @contextlib.contextmanager
    def by_value(self) -> Iterator[None]:
        """While this lasts, cloudpickle takes local modules by value; the user's own use of it is not touched after."""
        with self._lock:
            self._users += 1
            already = cloudpickle.list_registry_pickle_by_value()
            fresh = [module for name, module in self.find().items() if name not in already and name in sys.modules]
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
                        with contextlib.suppress(ValueError):  # the user took it out meanwhile
                            cloudpickle.unregister_pickle_by_value(module)
                    self._registered.clear()


LOCAL_MODULES = LocalModules()
