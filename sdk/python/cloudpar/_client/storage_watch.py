"""Decides what a pool does while its master, or its own worker, cannot write results.

The pool waits and logs a warning. Only a pool with its own master gives up after a while.
"""

import logging
import math
import os
import shutil
import time
from collections.abc import Callable

from cloudpar.errors import FolderUnwritable
from cloudpar_protocol.payloads import Unwritable
from cloudpar_protocol.transport.payload_folder import PayloadFolder

SAY_S = 5.0
"""If no result could be stored for this many seconds, the pool logs a warning."""

log = logging.getLogger("cloudpar")


class StorageWatch:
    """Records whether results can be stored. Only one thread may use it.

    If others operate the master, the pool waits until an operator frees disk space. A pool with its own master gives up
    after `patience_s`. It already gives up after SAY_S if the results of a single package fill the disk. The master
    keeps these results until all of them have been read, so waiting frees no space.

    Args:
        folder: The payload folder of the pool's own master; None if others operate the master.
        patience_s: How long the pool waits for space in its own folder, in seconds.
        open_packages: Returns how many packages have not been read to the end.
    """

    def __init__(self, folder: PayloadFolder | None, patience_s: float, open_packages: Callable[[], int]) -> None:
        self._folder = folder
        self._patience_s = patience_s
        self._open_packages = open_packages
        self._unwritable_at: float | None = None
        self._said = False

    def heard(self, unwritable: Unwritable | None, *, news: bool) -> FolderUnwritable | None:
        """Record the master's latest report, and decide whether the pool gives up.

        Args:
            unwritable: Why results cannot be stored; None if they can.
            news: Whether the report came with results or with another change of a package. If so, the master can still
                store something from time to time, and the waiting time starts again.

        Returns:
            The error with which the caller ends the packages under way, if the pool gives up; otherwise None.
        """
        now = time.monotonic()
        if unwritable is None or news:
            self._unwritable_at = None
            if self._said and unwritable is None:
                self._said = False
                log.warning("cloudpar: results can be stored again")
            return None
        if self._unwritable_at is None:
            self._unwritable_at = now
        waited_s = now - self._unwritable_at
        if self._folder is not None and (waited_s >= self._patience_s or (waited_s >= SAY_S and self._is_hopeless())):
            self._unwritable_at, self._said = None, False
            return folder_unwritable(self._folder, unwritable.errno)
        if waited_s >= SAY_S and not self._said:
            self._said = True
            log.warning("cloudpar: no result can be stored: %s; waiting until there is room", unwritable.why)
        return None

    def due_s(self) -> float:
        """Return after how many seconds the caller must call `heard` again, because the pool may log or give up then.

        The pool may log after SAY_S, and a pool with its own master may give up after `patience_s`. The result is
        infinite if results can be stored, or if both times are over.
        """
        if self._unwritable_at is None:
            return math.inf
        waited_s = time.monotonic() - self._unwritable_at
        steps = (SAY_S,) if self._folder is None else (SAY_S, self._patience_s)
        return min((step_s - waited_s for step_s in steps if step_s > waited_s), default=math.inf)

    def _is_hopeless(self) -> bool:
        """Whether the results of a single package fill the disk, so that waiting frees no space.

        The method assumes this if at most one package is open, and if the folder's files take more than half of the
        disk's used space.
        """
        if self._folder is None or self._open_packages() > 1:
            return False
        return _size_bytes(str(self._folder)) > shutil.disk_usage(str(self._folder)).used / 2


def folder_unwritable(folder: PayloadFolder, number: int) -> FolderUnwritable:
    """Return the error for a pool whose own temporary folder cannot be written.

    The text names the folder, says how much space is free if the system reports it, and says what to do.
    """
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
    """The disk space of a folder's files, in bytes."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(path, name)).st_blocks * 512  # noqa: PTH118 - faster than a Path
            except OSError:  # the master has removed the file
                continue
    return total
