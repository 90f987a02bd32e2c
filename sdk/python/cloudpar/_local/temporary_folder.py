"""A temporary folder of one process.

`close` removes the folder. If the process was killed, `sweep` in a later process removes it.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

PREFIX = "cloudpar-"
LOCK = "pool-lock"
"""The name of the lock file. The lock file of a master's data folder has another name. Otherwise `sweep` would remove
the data of a stopped master if the data folder is among the temporary folders and its name starts with PREFIX.
"""


class TemporaryFolder:
    """A new folder with a lock file. The operating system releases the lock when this process ends.

    Raises:
        OSError: The folder or the file cannot be made.
    """

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        # The lock file gets its name when it is locked. Otherwise another process that starts a pool at the same moment
        # could find it unlocked, and its `sweep` would remove this folder.
        unlocked = self.path / f"{LOCK}.new"
        self._lock = os.open(unlocked, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        unlocked.rename(self.path / LOCK)

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.abandon()

    def abandon(self) -> None:
        """In a fork of this process: leave the folder and its lock to the parent."""
        with contextlib.suppress(OSError):
            os.close(self._lock)


def sweep() -> None:
    """Remove the temporary folders that processes of this user have left behind."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{LOCK}"):
        with contextlib.suppress(OSError):  # the folder belongs to another user, is in use, or was just removed
            lock = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(lock).st_uid == os.getuid():
                    shutil.rmtree(path.parent, ignore_errors=True)
            finally:
                os.close(lock)
