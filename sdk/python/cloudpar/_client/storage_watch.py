"""What a pool does while its master, or a worker of its own, cannot write: say so, wait, and at last give up."""

import logging
import math
import os
import shutil
import time
from collections.abc import Callable

from cloudpar.errors import FolderUnwritable
from cloudpar_protocol.payload_folder import PayloadFolder
from cloudpar_protocol.payloads import Unwritable

SAY_S = 5.0
"""The log says that nothing can be written after this time, in seconds; a short lack of room changes nothing."""

log = logging.getLogger("cloudpar")


class StorageWatch:
    """Hears whether results can be stored. Used by one thread.

    With the master of a deployment the pool waits: an operator makes room. With a master of its own it waits for its
    patience. It does not wait while only its own results fill the disk, and no other package can be read to the end:
    these results are kept until their own package has been read, so nothing makes room.

    Args:
        folder: The payload folder of the pool's own master; None: the master is another's.
        patience_s: How long the pool waits for room in its own folder.
        open_packages: Returns how many packages have not been read to the end.
    """

    def __init__(self, folder: PayloadFolder | None, patience_s: float, open_packages: Callable[[], int]) -> None:
        self._folder = folder
        self._patience_s = patience_s
        self._open_packages = open_packages
        self._since_s: float | None = None
        self._said = False

    def heard(self, unwritable: Unwritable | None, *, news: bool) -> FolderUnwritable | None:
        """Note what the master says.

        Args:
            unwritable: What cannot be written, or None.
            news: Whether results came at the same time: then there is room now and then.

        Returns:
            The error that ends the packages under way, if waiting is of no use.
        """
        now_s = time.monotonic()
        if unwritable is None or news:
            self._since_s = None
            if self._said and unwritable is None:
                self._said = False
                log.warning("cloudpar: results can be stored again")
            return None
        if self._since_s is None:
            self._since_s = now_s
        waited_s = now_s - self._since_s
        if self._folder is not None and (waited_s >= self._patience_s or (waited_s >= SAY_S and self._is_hopeless())):
            self._since_s, self._said = None, False
            return folder_unwritable(self._folder, unwritable.errno)
        if waited_s >= SAY_S and not self._said:
            self._said = True
            log.warning("cloudpar: no result can be stored: %s; waiting until there is room", unwritable.why)
        return None

    def due_s(self) -> float:
        """In how many seconds `heard` may decide something new; infinite while results can be stored."""
        if self._since_s is None:
            return math.inf
        waited_s = time.monotonic() - self._since_s
        steps = (SAY_S,) if self._folder is None else (SAY_S, self._patience_s)
        return min((step_s - waited_s for step_s in steps if step_s > waited_s), default=math.inf)

    def _is_hopeless(self) -> bool:
        """Whether only the results of one package, which are kept until it is read, can make room."""
        if self._folder is None or self._open_packages() > 1:
            return False
        return _size_bytes(str(self._folder)) > shutil.disk_usage(str(self._folder)).used / 2


def folder_unwritable(folder: PayloadFolder, number: int) -> FolderUnwritable:
    """Return the error of a pool whose own temporary folder cannot be written; its text names folder, room and fix."""
    try:
        free = f"{shutil.disk_usage(str(folder)).free / 1e6:,.1f} MB free"
    except OSError:
        free = "its free space is unknown"
    return FolderUnwritable(
        number,
        f"the temporary folder of this pool, {folder}, cannot be written ({os.strerror(number)}; {free}): set TMPDIR "
        "to a folder with more room before the program starts, or keep less there by buffersize= of map, or by "
        "smaller results",
    )


def _size_bytes(folder: str) -> int:
    """How much the files of a folder take on the disk."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(path, name)).st_blocks * 512  # noqa: PTH118 - one object less a file
            except OSError:  # the master removed it meanwhile
                continue
    return total
