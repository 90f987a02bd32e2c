"""How failures that no caller caused are logged, and which of them a caller may wait for."""

import errno
import logging
import sqlite3
import time

from cloudpar_protocol.errors import Unavailable

REPEAT_S = 60.0
"""A full disk is logged once in this time, though it refuses several requests a second."""

RETRY_S = 5.0
"""How long a caller that is refused for a full disk waits before its next attempt."""

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_CANNOT_WRITE = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}

log = logging.getLogger("cloudpar_master")


def unwritable(error: BaseException) -> str | None:
    """Return what the system said if an error means that nothing can be written, such as on a full disk.

    >>> unwritable(OSError(errno.ENOSPC, "No space left on device"))
    'No space left on device'
    >>> unwritable(OSError(errno.ENOENT, "No such file")), unwritable(ValueError())
    (None, None)
    """
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(unwritable, error.exceptions)), None)
    if isinstance(error, sqlite3.OperationalError):
        return str(error) if error.sqlite_errorcode & 0xFF in _CANNOT_WRITE else None  # the low byte is the kind
    if isinstance(error, OSError):
        return error.strerror if error.errno in _NO_ROOM else None
    return None


class FailureLog:
    """Logs each failure with its traceback; but that nothing can be written, in one line and once in a minute."""

    def __init__(self) -> None:
        self._logged_s = -REPEAT_S

    def note(self, error: Exception, what: str) -> Unavailable | None:
        """Log a failure.

        Args:
            error: What was raised.
            what: What failed, as the beginning of a sentence.

        Returns:
            The error for the caller, if it may try again once there is space.
        """
        said = unwritable(error)
        if said is None:
            log.error("%s", what, exc_info=error)
            return None
        text = f"the master cannot write to its data folder ({said}): free space on its disk"
        now = time.monotonic()
        if now - self._logged_s >= REPEAT_S:
            self._logged_s = now
            log.warning("%s; until then it refuses what it cannot keep, and nothing that it has is lost", text)
        return Unavailable(f"{text}; the request is tried again", RETRY_S)
