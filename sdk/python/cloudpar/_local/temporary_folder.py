"""A folder that ends with its process: by `close`, or swept up by a later process if this one was killed."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

PREFIX = "cloudpar-"
LOCK = "lock"


class TemporaryFolder:
    """A new folder. While this process lives it holds a lock in it, which the system releases with the process."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = os.open(self.path / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self) -> None:
        """Remove it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.abandon()

    def abandon(self) -> None:
        """In a forked child: it is the parent's."""
        with contextlib.suppress(OSError):
            os.close(self._lock)


def sweep() -> None:
    """Remove the folders of this user's processes that were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{LOCK}"):
        with contextlib.suppress(OSError):  # not ours, or in use, or gone meanwhile
            lock = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(lock).st_uid == os.getuid():
                    shutil.rmtree(path.parent, ignore_errors=True)
            finally:
                os.close(lock)
