"""Makes the project's modules importable in an executor, which runs this module.

This module is pickled by value with the task code, so it also works at workers of older releases. An executor may get
two versions of a project, or two projects with equal module names. Each version has a namespace of its own, and
`sys.modules` contains the modules of only one namespace at a time.
"""

from __future__ import annotations

import importlib
import io
import os
import pickle
import sys
import tempfile
import weakref
import zipfile
from types import ModuleType
from typing import Any

HOLDER = "_cloudpar_project"
"""The name of the module in which an executor keeps namespaces. The module in this file cannot keep them, since each
task code contains a copy of this module.
"""

SENDER = "cloudpar._serialization.project.shipment"
"""The name of the client's module that makes the arguments of `load`. Its CLIENT is the id of a client's process. By
this id `load` recognizes the process that has sent the task code, and does not change that process's modules."""

WORKER = "cloudpar_worker.executor.project_folders"
"""The worker's module whose `folder` is deleted when the executor ends."""


class Namespace:
    """The modules of one version of a project. A namespace lives while task code uses it, or while it is active."""

    def __init__(self) -> None:
        self.digests: dict[str, str] = {}
        self.folders: list[str] = []
        self.modules: dict[str, ModuleType] = {}
        self.root = ""

    def fits(self, digests: dict[str, str]) -> bool:
        """Whether these units can be added: the namespace must not contain another version of any of them."""
        return all(self.digests.get(name, digest) == digest for name, digest in digests.items())

    def owns(self, name: str) -> bool:
        """Whether a module belongs to one of this namespace's units."""
        while name:
            if name in self.digests:
                return True
            name = name.rpartition(".")[0]
        return False

    def enter(self) -> None:
        """Activate this namespace: imports then find its modules, and no modules of other namespaces."""
        here = holder()
        active = here.active
        if active is self:
            return
        if active is not None:
            active.modules = {name: sys.modules.pop(name) for name in list(sys.modules) if active.owns(name)}
            sys.path[:] = [folder for folder in sys.path if folder not in active.folders]
        for name in [name for name in sys.modules if self.owns(name)]:
            del sys.modules[name]
        sys.modules.update(self.modules)
        sys.path[:0] = self.folders
        importlib.invalidate_caches()
        here.active = self

    def add(self, digests: dict[str, str], folders: list[str], archive: bytes) -> None:
        """Add units (modules or whole Python packages) to this namespace, which must be the active one.

        Imports find the units in `folders` if the executor runs on the client's machine, otherwise in `archive`.
        """
        fresh = [name for name in digests if name not in self.digests]
        self.digests.update(digests)
        if fresh and archive:
            if not self.root:
                self.root = _new_folder()
                folders = [self.root, *folders]
            with zipfile.ZipFile(io.BytesIO(archive)) as file:
                for place in file.namelist():
                    # Existing files are kept, because overwriting an extension module that is in use would crash the
                    # executor.
                    if not os.path.lexists(os.path.join(self.root, place)):
                        file.extract(place, self.root)
        missing = [folder for folder in folders if folder not in self.folders]
        if missing:
            self.folders = [*missing, *self.folders]
            sys.path[:] = [*self.folders, *(folder for folder in sys.path if folder not in self.folders)]
        if fresh:
            for name in [name for name in sys.modules if any(f"{name}.".startswith(f"{unit}.") for unit in fresh)]:
                del sys.modules[name]  # otherwise imports would find the worker's own module of the same name
        importlib.invalidate_caches()


class ProjectFunction:
    """A function, its namespace, and the classes and functions (parts) that its task data refers to."""

    def __init__(self, function: Any, namespace: Namespace | None, parts: dict[str, Any]) -> None:
        self.function = function
        self.parts = parts
        self.namespace = namespace

    def enter_project_of_cloudpar(self) -> Any:
        """Enter the namespace, so that task data can be decoded, and return the plain function."""
        if self.namespace is not None:
            self.namespace.enter()
        return self.function

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the function. Only workers that do not know `enter_project_of_cloudpar` use this."""
        return self.enter_project_of_cloudpar()(*args, **kwargs)


def load(
    client: str, project: tuple[dict[str, str], list[str], bytes], parts: dict[str, bytes], code: bytes
) -> ProjectFunction:
    """Unpickle task code after making its project's modules importable.

    Args:
        client: The id of the process that sent the code. In that process, `load` does not change imports.
        project: Three values: the versions of the units by name, the folders to search, and a zip archive of the units.
            If executors run on the client's machine, the archive is empty; otherwise the list of folders is empty.
        parts: The pickles of classes and functions that task data refers to, by key.
        code: The pickle of the function.
    """
    digests, folders, archive = project
    namespace = None
    if (digests or folders) and client != getattr(sys.modules.get(SENDER), "CLIENT", None):
        here = holder()
        fitting = [each for each in (here.active, *here.namespaces) if each is not None and each.fits(digests)]
        namespace = fitting[0] if fitting else Namespace()
        here.namespaces.add(namespace)
        namespace.enter()
        namespace.add(digests, folders, archive)
    loaded = {key: pickle.loads(pickled) for key, pickled in parts.items()}
    holder().parts.update(loaded)
    return ProjectFunction(_loads(code), namespace, loaded)


def _loads(code: bytes | memoryview) -> Any:
    """Unpickle task code. If a worker has mapped it, large buffers are used where they are."""
    large_buffers = sys.modules.get(
        "cloudpar_protocol.large_buffers"
    )  # a worker of an earlier release has no such module
    return pickle.loads(code) if large_buffers is None else large_buffers.loads(memoryview(code))


def holder() -> Any:
    """Return the module in which an executor keeps namespaces, and the classes and functions that task data refers to.

    The first call makes the module.
    """
    here: Any = sys.modules.get(HOLDER)
    if here is None:
        parts: Any = weakref.WeakValueDictionary()

        def part_of(key: str) -> Any:
            return parts[key]

        part_of.__module__, part_of.__qualname__ = HOLDER, "part_of"  # task data refers to the function by this name
        here = sys.modules[HOLDER] = ModuleType(HOLDER)
        vars(here).update(active=None, namespaces=weakref.WeakSet(), parts=parts, part_of=part_of)
    return here


def _new_folder() -> str:
    base = getattr(sys.modules.get(WORKER), "folder", "")
    if not base:
        return tempfile.mkdtemp(prefix="cloudpar-project-")
    os.makedirs(base, mode=0o700, exist_ok=True)
    return tempfile.mkdtemp(dir=base)
