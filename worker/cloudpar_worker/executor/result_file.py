"""Large results, which an executor passes to its agent as files in memory instead of copying them into its channel."""

import io
import os
import pickle
from collections.abc import Callable
from typing import IO, Any, Final

from cloudpar_protocol.large_buffers import LARGE_BYTES, Marker, is_large

from . import by_value, failures

MOST_BYTES: Final = 64 * 1024 * 1024
"""The largest result that travels as a file, in bytes. The agent reads a file at once, and meanwhile it does nothing
else. It reads a larger result in parts, from the channel.
"""


class ResultFile:
    """A serialized value in a file in memory.

    Raises:
        OSError: The system makes no such file.
        AttributeError: The system has no such files.
    """

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("cloudpar-result", os.MFD_CLOEXEC)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def fill(self, write: Callable[[IO[bytes]], object]) -> None:
        """Replace the content by what `write` writes into the file that it is called with.

        Raises:
            TooLarge: The content would have more than MOST_BYTES.
            BaseException: What `write` raised.
        """
        os.truncate(self.descriptor, 0)
        os.lseek(self.descriptor, 0, os.SEEK_SET)
        with io.FileIO(self.descriptor, "wb", closefd=False) as raw, _Bounded(raw) as file:
            write(file)
            self._size = file.tell()

    def read(self) -> bytes:
        """Return the content."""
        with io.FileIO(self.descriptor, "rb", closefd=False) as file:
            file.seek(0)
            return file.readall()

    def close(self) -> None:
        """Drop the content, unless another process has the file, too."""
        os.close(self.descriptor)


class TooLarge(Exception):
    """A value takes more than MOST_BYTES."""


class _Bounded(io.BufferedWriter):
    def write(self, data: Any) -> int:
        if self.tell() + memoryview(data).nbytes > MOST_BYTES:
            raise TooLarge
        return super().write(data)


class _LargeBuffer(Exception):
    """A value contains a large buffer."""


def serialize(value: Any) -> bytes | ResultFile:
    """Pickle a value as `failures.serialize` does. A large pickle is in a file, where its large buffers are marked.

    Raises:
        BaseException: What pickling raised.
    """
    try:
        data = pickle.dumps(value, 5, buffer_callback=_refuse_large)
    except _LargeBuffer:
        return _marked(value)
    except Exception:
        data = by_value.dumps(value)
    if not LARGE_BYTES <= len(data) <= MOST_BYTES:
        return data
    made = _in_file(lambda file: file.write(data))
    return data if made is None else made


def _refuse_large(buffer: pickle.PickleBuffer) -> bool:
    if is_large(buffer):
        raise _LargeBuffer
    return True


def _marked(value: Any) -> bytes | ResultFile:
    try:
        made = _in_file(lambda file: _dump(value, file, pickle.Pickler))
    except Exception:  # plain pickle fails, for example, for a class of `__main__`
        made = _in_file(lambda file: _dump(value, file, by_value.Pickler))
    return failures.serialize(value) if made is None else made


def _in_file(write: Callable[[IO[bytes]], object]) -> ResultFile | None:
    """Return a file that `write` has filled; None if the value is too large, or the system gives no such file."""
    try:
        made = ResultFile()
    except (OSError, AttributeError):
        return None
    try:
        made.fill(write)
    except BaseException as error:
        made.close()
        if isinstance(error, OSError | TooLarge):
            return None
        raise
    return made


def _dump(value: Any, file: IO[bytes], pickler: Callable[..., pickle.Pickler]) -> None:
    marker = Marker(file)
    pickler(marker, protocol=5).dump(value)
    marker.end(0)
