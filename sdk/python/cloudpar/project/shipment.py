"""Task code with the modules of the project and the parts that it needs."""

import io
import pickle
import secrets
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from cloudpar.carried import reduced
from cloudpar.installed import project_path
from cloudpar.local_modules import LOCAL_MODULES, OWN
from cloudpar.serialization import Needs
from cloudpar.task_code import Code

from . import remote
from .archive import archive
from .imports import of_file
from .units import SOURCE_SUFFIXES, File, Unit, digest, find_unit

CLIENT = secrets.token_hex(8)
"""Names this process: task code that is loaded here again moves no modules."""

_ELSEWHERE = sys.stdlib_module_names | OWN | {"__main__", "__mp_main__"}
_ARCHIVES = 2
"""Archives that are kept, so that maps over the same project do not pack it again."""


class Shipper:
    """Gives task code what it needs of the project.

    Args:
        here: The executors run on this machine and find the project in the same folders.
    """

    def __init__(self, *, here: bool) -> None:
        self._here = here
        self._folders = project_path() if here else []
        """Where executors look in any case."""
        self._lock = threading.Lock()
        self._last: tuple[object, Code] | None = None
        """What was made last, for many calls of one large function."""
        self._archives: OrderedDict[tuple[tuple[str, str], ...], bytes] = OrderedDict()

    def ship(self, code: Code, needs: Needs) -> Code:
        """Task code that finds its modules, and the parts that its task data refer to.

        Args:
            code: A function.
            needs: What its task data need.

        Raises:
            TooLarge: The modules of the project are over the limit, or all together.
        """
        if code.reference is not None:
            return code
        units = reachable(code.modules | needs.modules)
        folders = project_path() if self._here else []
        if not units and not needs.parts and folders == self._folders:
            return code
        digests = {unit.name: digest(files) for unit, files in units.items()}
        made_of = code.hash, digests, folders, list(needs.parts)
        last = self._last
        if last is not None and last[0] == made_of:
            return last[1]._replace(name=code.name)
        packed = b"" if self._here or not units else self._archive(digests, units)
        file = io.BytesIO()
        _Pickler(file, 5).dump(_Load(CLIENT, (digests, folders, packed), needs.parts, code.data))
        shipped = code.holding(file.getvalue())
        self._last = made_of, shipped
        return shipped

    def _archive(self, digests: Mapping[str, str], units: Mapping[Unit, list[File]]) -> bytes:
        key = tuple(sorted(digests.items()))
        with self._lock:
            if key not in self._archives:
                self._archives[key] = archive(file for files in units.values() for file in files)
                if len(self._archives) > _ARCHIVES:
                    self._archives.popitem(last=False)
            self._archives.move_to_end(key)
            return self._archives[key]


def reachable(names: Iterable[str]) -> dict[Unit, list[File]]:
    """The units of the project to which these modules belong, and those that their sources import, with their files."""
    loaded = LOCAL_MODULES.units()
    found: dict[Unit, list[File]] = {}
    pending, seen = list(names), set[str]()
    while pending:
        name = pending.pop()
        if name in seen or name.partition(".")[0] in _ELSEWHERE:
            continue
        seen.add(name)
        unit = loaded.get(name) or find_unit(name)
        if unit is not None and unit not in found:
            found[unit] = unit.files()
            for file in found[unit]:
                if file.place.endswith(SOURCE_SUFFIXES):
                    pending += of_file(file, _package(file))
    return dict(sorted(found.items()))


def _package(file: File) -> str:
    return file.place.rpartition("/")[0].replace("/", ".")


class _Load:
    """Pickles as a call of `remote.load`."""

    def __init__(self, *arguments: Any) -> None:
        self._arguments = arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return remote.load, self._arguments


class _Pickler(pickle.Pickler):
    def reducer_override(self, thing: Any) -> Any:
        return reduced(remote.load, remote) if thing is remote.load else NotImplemented
