"""Serializes the data of one package, in a layout from which a worker can read any part."""

import io
import itertools
import sys
import tempfile
from array import array
from contextlib import suppress
from typing import IO

from cloudpar.errors import TooLarge
from cloudpar_protocol.large_buffers import ALIGNMENT, is_marked
from cloudpar_protocol.limits import BLOB_BYTES, INLINE_DATA_BYTES, PACKAGE_TASKS
from cloudpar_protocol.payloads import CallStyle, Codec, InlineData, inline_size
from cloudpar_protocol.seals import Seals
from cloudpar_protocol.transport.payload_folder import NO_ROOM, PayloadFolder

from . import msgpack_data
from .blob import Blob
from .diagnosis import Call
from .pickling import DataNeeds, Pickler, refusal

IN_MEMORY_BYTES = 64 << 20
"""Up to this size, in bytes, the serialized task data of a map waits in memory for its upload. Larger data waits in a
temporary file."""

DRAFT_BYTES = 1 << 20
"""If the pool has its own master, a map's task data above this size, in bytes, is written to the payload folder."""

OFFSET_BYTES = 8


class Packer:
    """Serializes the data of a package, one task after the other.

    Attributes:
        needs: The modules, and the pickled classes and functions, that the data of all tasks refers to.
    """

    def __init__(
        self,
        seals: Seals | None = None,
        folder: PayloadFolder | None = None,
        first: int = 0,
        call: CallStyle = "value",
        codec: Codec = "pickle",
    ) -> None:
        self._seals = seals
        self._codec = codec
        self._folder = folder
        self._in_memory_bytes = IN_MEMORY_BYTES if folder is None else DRAFT_BYTES
        self._first = first
        self._call = call
        self._made = bytearray()
        self.needs = DataNeeds()
        self._file: IO[bytes] = io.BytesIO()
        self._writer = self._new_writer()
        self._starts = array("Q")
        self._position = 0

    def append(self, value: object) -> None:
        """Serialize the next task's data. If this raises a SerializationError, the earlier data stays intact.

        Raises:
            SerializationError: The data cannot be serialized; the text names the part that is the cause.
            TooLarge: There are more tasks, or more bytes of data, than a package may have.
            OSError: The disk is full, or a file for the data cannot be created.
            RequestError: The payload folder was removed, or belongs to another user now.
        """
        if len(self._starts) == PACKAGE_TASKS:
            raise too_many()
        self._starts.append(self._position)
        try:
            self._writer.append(value)
        except Exception as error:
            if is_full(error):
                raise  # the disk is full, so the value is not the cause
            self._file.seek(self._starts.pop())
            self._file.truncate()
            task = f"task {self._first + len(self._starts)}"
            named = Call(task, tuple(value), {}) if self._call == "args" and isinstance(value, tuple) else value
            refused = refusal if self._codec == "pickle" else msgpack_data.refusal
            raise refused(error, named, f"the data of {task}") from error
        self._position = self._file.tell()
        if self._seals is not None:
            self._made += self._seal_last(self._seals)
        if self._position > self._in_memory_bytes and isinstance(self._file, io.BytesIO):
            self._spill()
        if self._position > BLOB_BYTES:
            self.check()

    def append_serialized(self, data: bytes) -> None:
        """Add the next task's data, which is already serialized."""
        if self._seals is None and is_marked(memoryview(data)):
            # The buffers are aligned from the start of their pickle on. Zeros have no effect at the end of an item
            # without marked buffers, and behind one with marked buffers no zeros are needed.
            self._position += self._file.write(bytes(-self._position % ALIGNMENT))
        self._starts.append(self._position)
        self._position += self._file.write(data)
        if self._seals is not None:
            self._made += self._seals.data(len(self._starts) - 1, data)

    def _seal_last(self, seals: Seals) -> bytes:
        file, index, start = self._file, len(self._starts) - 1, self._starts[-1]
        if isinstance(file, io.BytesIO):
            with file.getbuffer() as whole, whole[start : self._position] as item:
                return seals.data(index, item)
        file.seek(start)
        return seals.data(index, file.read(self._position - start))

    def _spill(self) -> None:
        memory = self._file
        if self._folder is None:
            self._file = tempfile.TemporaryFile(prefix="cloudpar-")  # noqa: SIM115 - closed by the blob's owner
        else:
            self._file = self._folder.draft()
        self._file.write(memory.getbuffer())  # type: ignore[attr-defined]
        self._writer = self._new_writer()

    def _new_writer(self) -> Pickler | msgpack_data.Writer:
        if self._codec == "msgpack":
            return msgpack_data.Writer(self._file)
        return Pickler(self._file, self.needs.modules, self.needs)

    def check(self) -> None:
        """Check the size of the data.

        Raises:
            TooLarge: The data exceeds what a package may have.
        """
        n = len(self._starts)
        size = self._position + len(self._made) + OFFSET_BYTES * (n + 1)
        if size <= BLOB_BYTES:
            return
        alone = self._position - self._starts[-1] + len(self._made) // n + 2 * OFFSET_BYTES
        if alone > BLOB_BYTES:
            raise TooLarge(
                f"the data of task {self._first + n - 1} alone take {alone:,} bytes, and a package carries "
                f"{BLOB_BYTES:,}: send a reference (a path, a URL) that the task reads itself"
            )
        raise TooLarge(
            f"the data of the first {n:,} tasks take {size:,} bytes, and a package carries {BLOB_BYTES:,}: give "
            "buffersize= so that they travel in several packages, or send references (paths, URLs, ranges) that the "
            "tasks read themselves"
        )

    def __len__(self) -> int:
        return len(self._starts)

    def finish(self) -> InlineData | Blob:
        """Return everything that was added, in the layout that workers read.

        Raises:
            TooLarge: The data exceeds what a package may have.
            OSError: The disk is full.
        """
        self.check()
        n = len(self._starts)
        fits = inline_size(n, self._position + len(self._made)) <= INLINE_DATA_BYTES
        if fits and isinstance(self._file, io.BytesIO):
            whole, ends = self._file.getvalue(), itertools.chain(self._starts[1:], (self._position,))
            items = [whole[start:end] for start, end in zip(self._starts, ends, strict=True)]
            return InlineData(items=items, seals=bytes(self._made))
        self._starts.append(self._position)
        if sys.byteorder == "big":
            self._starts.byteswap()
        self._file.write(self._made)
        self._file.write(self._starts.tobytes())
        return Blob(self._file, self._position + len(self._made) + OFFSET_BYTES * (n + 1))

    def close(self) -> None:
        """Drop everything that was added."""
        with suppress(OSError):  # flushing may fail on a full disk, but the bytes are not needed
            self._file.close()


def is_full(error: BaseException) -> bool:
    """Whether an error says that the disk has no room."""
    return isinstance(error, OSError) and error.errno in NO_ROOM


def too_many() -> TooLarge:
    """Return the error for an iterable, perhaps endless, with more values than a package may have."""
    return TooLarge(
        f"the iterable passed {PACKAGE_TASKS:,} items, the most that one package carries: give buffersize= "
        "(for example buffersize=10_000) so that it is consumed as results are read"
    )
