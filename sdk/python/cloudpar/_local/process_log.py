"""The log of a pool's own master or agent. Errors quote the end of the log."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

TAIL_BYTES = 2000
"""How many bytes of the end of a log an error text quotes."""

LEAST_FREE_BYTES = 1 << 20
"""If less disk space than this is free, in bytes, a process may have ended because it could not write its files."""


class ProcessLog:
    """The file that receives the standard error of one process.

    Args:
        folder: The folder of the file.
        name: The name of the process.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self.path = folder / f"{name}.log"

    def tail(self) -> str:
        """The last TAIL_BYTES of the log, for an error text; or a note that there is no log, or that it is empty."""
        with suppress(OSError), self.path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            return file.read().decode(errors="replace").strip() or "(it wrote nothing)"
        return "(it left no log)"

    def full_disk(self) -> str:
        """Return text to add to an error if the disk is full; empty if it is not full, or if the folder is gone.

        The log itself cannot say this, because it is on the same disk.
        """
        with suppress(OSError):  # the folder is gone
            if shutil.disk_usage(self._folder).free < LEAST_FREE_BYTES:
                return f"; the disk of {self._folder} is full: free space there, or set TMPDIR to a folder with more"
        return ""
