"""Packs task code together with modules of the project that it needs, and with code that its task data refers to."""

import io
import pickle
import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any

from cloudpar._serialization.carried import PickledCall, reduced
from cloudpar._serialization.installed import project_path
from cloudpar_protocol.large_buffers import Marker, is_marked

from . import remote
from .archive import archive, warn_of_secrets
from .listings import Listing
from .search import reachable
from .units import Unit

if TYPE_CHECKING:
    from cloudpar._serialization.pickling import DataNeeds
    from cloudpar._serialization.task_code import Code

CLIENT = secrets.token_hex(8)
"""The id of this process. A process that loads task code with its own id does not change its modules."""

_ARCHIVES = 2
"""How many archives are kept, so that further maps over the same project do not pack it again."""


class Shipper:
    """Adds to task code the modules of the project that it needs.

    Args:
        here: Whether the executors run on this machine, so that they find the project in the same folders.
    """

    def __init__(self, *, here: bool) -> None:
        self._here = here
        self._folders = project_path() if here else []
        """The folders that executors on this machine search even if the task code does not name them."""
        self._lock = threading.Lock()
        self._last: tuple[object, Code] | None = None
        """The last task code, and the values from which it was made. Further calls with the same values use it again.
        """
        self._archives: OrderedDict[tuple[tuple[str, str], ...], bytes] = OrderedDict()

    def ship(self, code: "Code", needs: "DataNeeds") -> "Code":
        """Return task code with its modules or their folders, and with the code that its task data refers to.

        Args:
            code: The serialized function.
            needs: The modules, classes and functions that its task data needs.

        Raises:
            TooLarge: The project's modules exceed their limit, or the whole task code exceeds the limit of task code.
        """
        if code.reference is not None:
            return code
        units = reachable(code.modules | needs.modules)
        folders = _folders(units) if self._here else []
        if not units and not needs.parts and folders == self._folders:
            return code
        digests = {unit.name: listing.digest for unit, listing in units.items()}
        made_of = code.hash, digests, folders, list(needs.parts)
        last = self._last
        if last is not None and last[0] == made_of:
            return last[1]._replace(name=code.name)
        packed = b"" if self._here or not units else self._archive(digests, units)
        file = io.BytesIO()
        marker = Marker(file)
        # As a bytearray, the code stays writable where an executor maps it, and so do the arrays that it contains.
        data = PickleBuffer(bytearray(code.data)) if is_marked(memoryview(code.data)) else code.data
        _Pickler(marker, 5).dump(PickledCall(remote.load, CLIENT, (digests, folders, packed), needs.parts, data))
        marker.end(0)
        shipped = code.holding(file.getvalue())
        self._last = made_of, shipped
        return shipped

    def _archive(self, digests: Mapping[str, str], units: Mapping[Unit, Listing]) -> bytes:
        key = tuple(sorted(digests.items()))
        with self._lock:
            if key not in self._archives:
                warn_of_secrets(units)
                self._archives[key] = archive(
                    file for listing in units.values() for file in listing.files if file.travels
                )
                if len(self._archives) > _ARCHIVES:
                    self._archives.popitem(last=False)
            self._archives.move_to_end(key)
            return self._archives[key]


def _folders(units: Iterable[Unit]) -> list[str]:
    """Return the folders that executors on this machine search for modules.

    These are the folders in sys.path that contain no installed packages, and the folders from which the units were
    imported. A folder of the second kind may be missing from sys.path. For example, the sys.path of a notebook has "",
    the current working directory. After the notebook has changed this directory, sys.path no longer leads to the units
    that were imported before.
    """
    folders = project_path()
    return list(dict.fromkeys([*folders, *(unit.folder for unit in units if unit.folder is not None)]))


class _Pickler(pickle.Pickler):
    def reducer_override(self, thing: Any) -> Any:
        return reduced(remote.load, remote) if thing is remote.load else NotImplemented
