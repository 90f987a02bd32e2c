"""Large results, which an executor passes to its agent as files in memory instead of copying them into its channel."""

import io
import os
import pickle
from collections.abc import Callable
from typing import IO, Any, Final

from cloudpar_protocol.large_buffers import LARGE_BYTES, Marker, is_large

from . import by_value

MOST_BYTES: Final = 64 * 1024 * 1024
"""The largest result that travels as a file, in bytes. The agent reads a file at once, and meanwhile it does nothing
else. It reads a larger result in parts, from the channel.
"""


class ResultFile:
    """A serialized value in a file in memory."""

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("cloudpar-result", os.MFD_CLOEXEC)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def fill(self, write: Callable[[IO[bytes]], object]) -> None:
        """Call `write` with the file, open for writing; if it raises, what it has written is dropped."""
        os.truncate(self.descriptor, 0)
        with io.FileIO(self.descriptor, "wb", closefd=False) as raw, io.BufferedWriter(raw) as file:
            file.seek(0)
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


class _LargeBuffer(Exception):
    """A value contains a large buffer."""


def serialize(value: Any) -> bytes | ResultFile:
    """Pickle a value as `failures.serialize` does; a large pickle is in a file, where its large buffers are marked.

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
    made = ResultFile()
    made.fill(lambda file: file.write(data))
    return made


def _refuse_large(buffer: pickle.PickleBuffer) -> bool:
    if is_large(buffer):
        raise _LargeBuffer
    return True


def _marked(value: Any) -> bytes | ResultFile:
    made = ResultFile()
    try:
        try:
            made.fill(lambda file: _dump(value, file, pickle.Pickler))
        except Exception:  # plain pickle fails, for example, for a class of `__main__`
            made.fill(lambda file: _dump(value, file, by_value.Pickler))
        if len(made) <= MOST_BYTES:
            return made
        data = made.read()
    except BaseException:
        made.close()
        raise
    made.close()
    return data


def _dump(value: Any, file: IO[bytes], pickler: Callable[..., pickle.Pickler]) -> None:
    marker = Marker(file)
    pickler(marker, protocol=5).dump(value)
    marker.end(0)
