"""Logs failures that no caller caused, and says whether the caller may try again."""

import errno
import logging
import sqlite3
import time

from cloudpar_protocol.errors import Unavailable
from cloudpar_protocol.payloads import WHY_CHARS, Unwritable

from .storage_state import StorageState

REPEAT_S = 60.0
"""The log says at most once in this many seconds that the disk fails or is full, however many requests fail."""

RETRY_S = 5.0
"""If the master refuses a request because its disk fails or is full, the caller tries again after this many seconds."""

_OWN = "give it, and all that is in it, to the user of the master (chown -R)"
_FIXES = {
    errno.ENOSPC: "free space on its disk",
    errno.EIO: "check its disk, which fails or is full: the system's log (dmesg) says more",
    errno.EDQUOT: "free space, or raise the disk quota of its user",
    errno.EFBIG: "raise the limit of the size of its files (ulimit -f)",
    errno.EROFS: "mount its disk for writing",
    errno.ESTALE: "mount its disk again",
    errno.EACCES: _OWN,
    errno.EPERM: _OWN,
    errno.EMFILE: "raise the limit of its open files (ulimit -n)",
    errno.ENFILE: "close files on its machine, or raise fs.file-max",
}
"""For each error number that means that the master cannot write, or cannot open files: what an operator can do."""

_SQLITE_ERRNO = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_CANTOPEN: errno.EIO,
    sqlite3.SQLITE_READONLY: errno.EROFS,
}
"""For each kind of SQLite error: the system's error number that most often causes it. SQLite does not name the
cause."""

log = logging.getLogger("cloudpar_master")


def unwritable(error: BaseException) -> Unwritable | None:
    """Return a report with the system's message if an error means that nothing can be written; None for other errors.

    If the error is a group, the report is about the first such error in the group.

    >>> unwritable(OSError(errno.ENOSPC, "No space left on device")).why
    'No space left on device'
    >>> unwritable(OSError(errno.ENOENT, "No such file")), unwritable(ValueError())
    (None, None)
    """
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(unwritable, error.exceptions)), None)
    number = None
    if isinstance(error, sqlite3.OperationalError):
        # Python's own errors of this class, such as for text that is no UTF-8, have no code. The low byte is the kind.
        number = _SQLITE_ERRNO.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
    elif isinstance(error, OSError) and error.errno in _FIXES:
        number = error.errno
    return None if number is None else Unwritable(str(getattr(error, "strerror", None) or error), number)


class FailureLog:
    """Logs each failure with its traceback. For failures to write, it logs at most one line a minute instead.

    Args:
        storage: Receives a report if nothing can be written.
    """

    def __init__(self, storage: StorageState) -> None:
        self._storage = storage
        self._logged_at = -REPEAT_S

    def note(self, error: Exception, what: str) -> Unavailable | None:
        """Log a failure.

        Args:
            error: The error that was raised.
            what: The start of the log line, such as "a request failed".

        Returns:
            The error with which the server answers the caller, if nothing can be written: the caller then tries again.
            None for any other failure.
        """
        found = unwritable(error)
        if found is None:
            log.error("%s", what, exc_info=error)
            return None
        verb = "read or write" if found.errno == errno.EIO else "write to"
        text = f"the master cannot {verb} its data folder ({found.why}): {_FIXES[found.errno]}"
        self._storage.note(Unwritable(text[:WHY_CHARS], found.errno))
        now = time.monotonic()
        if now - self._logged_at >= REPEAT_S:
            self._logged_at = now
            log.warning("%s; until then it refuses what it cannot keep, and nothing that it has is lost", text)
        return Unavailable(f"{text}; the request is tried again", RETRY_S)
