"""Reads large results that an executor sends as files in memory. Only executors of an own worker may send files."""

import fcntl
import os
import socket
from collections import deque
from typing import Final

from cloudpar_worker.executor.frames import Garbage
from cloudpar_worker.executor.result_file import MOST_BYTES

ANCILLARY_BYTES: Final = socket.CMSG_LEN(4)
"""The room for one descriptor beside the bytes of a read. The kernel closes further descriptors."""
_WAITING: Final = 4
"""The most files whose frame has not been read completely. The executor sends one file with each frame."""
CLOSE_ON_EXEC: Final[int] = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
"""The flag of a read for descriptors that no program inherits. macOS, where no descriptors come, lacks it."""
_GET_SEALS: Final = 1034
"""The operation F_GET_SEALS of fcntl, which the standard library of Python does not name before 3.13."""


class ResultFiles:
    """The files that have arrived from one executor, in order."""

    def __init__(self) -> None:
        self._descriptors: deque[int] = deque()
        self._read_bytes = 0

    def add(self, ancillary: list[tuple[int, int, bytes]]) -> None:
        """Add the files that came with the bytes of a read.

        Raises:
            Garbage: There are more files than the executor's own code sends.
        """
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                self._descriptors.extend(memoryview(data[: len(data) // 4 * 4]).cast("i"))
        if len(self._descriptors) > _WAITING:
            raise Garbage(f"more than {_WAITING} files at once")

    def take(self, size: int) -> bytes:
        """Read the next file, which has this many bytes, and close it.

        Raises:
            Garbage: There is no such file, or it is no file in memory. Reading any other file might block.
        """
        if not self._descriptors or size > MOST_BYTES:
            raise Garbage(f"the announcement of a file of {size} bytes, which did not come")
        descriptor = self._descriptors.popleft()
        try:
            fcntl.fcntl(descriptor, _GET_SEALS)
            data = os.pread(descriptor, size, 0)
        except OSError as error:
            raise Garbage(f"a file that no executor makes: {error}") from None
        finally:
            os.close(descriptor)
        if len(data) != size:
            raise Garbage(f"a file of {len(data)} bytes instead of {size}")
        self._read_bytes += size
        return data

    def read_bytes(self) -> int:
        """Return how many bytes were read since the last call."""
        count, self._read_bytes = self._read_bytes, 0
        return count

    def close(self) -> None:
        """Close the files that nothing has read."""
        while self._descriptors:
            os.close(self._descriptors.popleft())
