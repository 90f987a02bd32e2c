"""Collects and serializes the task data of a package, in a layout from which a worker can read any part."""

import io
import itertools
import logging
import sys
import tempfile
import threading
from array import array
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import IO, Any

from cloudpar.errors import TooLarge
from cloudpar_protocol.limits import BLOB_BYTES, INLINE_DATA_BYTES, PACKAGE_TASKS
from cloudpar_protocol.parts import checksums
from cloudpar_protocol.payloads import CallStyle, Codec, InlineData, RangeData, inline_size
from cloudpar_protocol.seals import Seals
from cloudpar_protocol.transport.payload_folder import NO_ROOM, PayloadFolder

from . import msgpack_data
from .diagnosis import Call
from .local_modules import LOCAL_MODULES
from .pickling import Needs, Pickler, refusal

IN_MEMORY_BYTES = 64 << 20
"""Up to this size, in bytes, the serialized task data of a map waits in memory for its upload. Larger data waits in a
temporary file."""

DRAFT_BYTES = 1 << 20
"""If the pool has its own master, a map's task data above this size, in bytes, is written to the payload folder."""

NOTICE_S = 10.0
INT64 = range(-(2**63), 2**63)
OFFSET_BYTES = 8

log = logging.getLogger("cloudpar")


class Blob:
    """A payload that is ready for upload. If it is in a file, `close` frees the disk space after the upload."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self.file = file
        self.size = size
        self._lock = threading.Lock()

    def body(self) -> list[memoryview] | IO[bytes]:
        """The content to upload: the bytes in memory, without a copy, or the file."""
        return [memoryview(self.file.getvalue())] if isinstance(self.file, io.BytesIO) else self.file

    def checksums(self) -> tuple[int, list[int]]:
        """The CRC-32 of the whole payload, and of each part if the payload is large enough to be uploaded in parts."""
        return checksums(self.size, self.read)

    def read(self, start: int, end: int) -> memoryview:
        """Return bytes [start, end). Any thread may call this method."""
        if isinstance(self.file, io.BytesIO):
            return memoryview(self.file.getvalue())[start:end]
        with self._lock:
            self.file.seek(start)
            return memoryview(self.file.read(end - start))

    def close(self) -> None:
        """Free the disk space; memory is freed once no upload uses it."""
        self.file.close()


@dataclass(frozen=True)
class Packed:
    """The task data of n tasks: a part of the request that starts them, or a blob that is uploaded before the request.

    `needs` are the modules, and the pickled classes and functions, that must be sent with the task code. `failure` is
    the exception that ended the values early, or None. Either the next value cannot be serialized (`refused` is then
    True), or the iterable raised the exception. With a failure, `n` may be 0.
    """

    n: int
    data: RangeData | InlineData | Blob
    needs: Needs = field(default_factory=Needs, compare=False)
    failure: Exception | None = None
    refused: bool = False

    def close(self) -> None:
        """If the data is a blob, close it. The bytes of the blob can then no longer be uploaded."""
        if isinstance(self.data, Blob):
            self.data.close()


def range_data(values: range) -> RangeData | None:
    """Return the task data of a range, as two numbers; None if it is empty, or a number needs more than 64 bits."""
    if len(values) > 0 and values[0] in INT64 and values[-1] in INT64 and values.step in INT64:
        return RangeData(start=values.start, step=values.step)
    return None


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
        self.needs = Needs()
        self._file: IO[bytes] = io.BytesIO()
        self._writer = self._new_writer()
        self._starts = array("Q")
        self._position = 0

    def append(self, value: object) -> None:
        """Serialize the next task's data. If this raises a SerializationError, the earlier data stays intact.

        Raises:
            SerializationError: The data cannot be serialized; the text names the part that cannot.
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
            if _is_full(error):
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


def pack(
    values: Iterable[Any],
    limit: int | None = None,
    codec: Codec = "pickle",
    seals: Seals | None = None,
    folder: PayloadFolder | None = None,
    *,
    first: int = 0,
    call: CallStyle = "value",
) -> Packed | None:
    """Collect and serialize the data of a package; return None if there are no values.

    Args:
        values: The values, one for each task.
        limit: Take at most this many values; None takes all values. If `values` is an iterator, a later call takes the
            next values. With a limit, the data ends before a value that cannot be serialized, or when the iterable
            raises an exception. The exception is then `failure` of the result.
        codec: The serialization that the task code expects.
        seals: The package's seals; None if the package is not sealed.
        folder: The payload folder of the pool's own master, to which large data is written. None if the pool has no
            master of its own, so that large data is uploaded.
        first: The index of the first value in its map, for error texts.
        call: How the function is called with a value, for error texts.

    Raises:
        SerializationError: A value cannot be serialized, and there is no limit.
        TooLarge: There are more values or more bytes than a package may have.
        OSError: The disk is full, or a file for the data cannot be created.
        RequestError: The payload folder was removed, or belongs to another user now.
        Exception: The iterable raised it, and there is no limit.
    """
    if limit is None and isinstance(values, Sized) and _is_over(values):
        raise too_many()
    if limit is None and isinstance(values, range):
        data = range_data(values)
        if data is not None:
            return Packed(len(values), data)
    packer = Packer(seals, folder, first, call, codec)
    try:
        with LOCAL_MODULES.by_value(), _notice() if limit is None and not isinstance(values, Sized) else nullcontext():
            failure, refused = _fill(packer, values, limit)
        n = len(packer)
        packed = packer.finish() if n else None if failure is None else InlineData([])
    except BaseException as error:
        packer.close()
        if isinstance(error, OSError) and _is_full(error):
            raise _no_room(error, folder) from error
        raise
    if packed is None or isinstance(packed, InlineData):
        packer.close()
    return None if packed is None else Packed(n, packed, packer.needs, failure, refused)


def _fill(packer: Packer, values: Iterable[Any], limit: int | None) -> tuple[Exception | None, bool]:
    """Pack the values. With a limit, return the error that ended the values early; without a limit, raise it.

    The second return value is True if a value caused the error, and False if the iterable raised it or there is no
    error.
    """
    taken = 0
    try:
        for value in values if limit is None else itertools.islice(values, limit):
            taken += 1
            packer.append(value)
    except Exception as error:
        if limit is None or isinstance(error, TooLarge) or _is_full(error):
            raise
        return error, taken > len(packer)
    return None, False


def _is_over(values: Sized) -> bool:
    try:
        return len(values) > PACKAGE_TASKS
    except OverflowError:  # a range may have more values than len() can return
        return True


def _is_full(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in NO_ROOM


def _no_room(error: OSError, folder: PayloadFolder | None) -> OSError:
    place = tempfile.gettempdir() if folder is None else folder
    fix = "free space there, or set TMPDIR to a folder with more before the program starts"
    return OSError(error.errno, f"{error.strerror}: the data of this package are written to {place}: {fix}")


def too_many() -> TooLarge:
    """Return the error for an iterable, perhaps endless, with more values than a package may have."""
    return TooLarge(
        f"the iterable passed {PACKAGE_TASKS:,} items, the most that one package carries: give buffersize= "
        "(for example buffersize=10_000) so that it is consumed as results are read"
    )


@contextmanager
def _notice() -> Iterator[None]:
    """Warn after some seconds that an iterable is still being read, since the iterable may be endless."""
    text = (
        "cloudpar: still collecting the iterable after %.0f s; no task starts before its end "
        "(buffersize= starts them as it goes on)"
    )
    timer = threading.Timer(NOTICE_S, log.warning, (text, NOTICE_S))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
