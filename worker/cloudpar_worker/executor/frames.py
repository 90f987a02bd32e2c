"""The messages between an agent and its executors.

Each message is a frame: the length of its body (4 bytes, little-endian), and the body. The body of a frame to an
executor is a Run, in MessagePack. With the frame come the descriptors of the files that contain its payloads, if any.
The body of a frame to the agent is a result, a file or a mark. A result is an ExecutorResult in MessagePack; the
executor sends one result for each task of a run, in order. A file says that the data of the next result are in the file
that comes with the frame. A mark is one byte, which says whether the running task waits for tasks of its own. The agent
checks everything that it receives, because task code can write to any descriptor.
"""

import struct
from collections.abc import Callable
from typing import Final

from msgspec import DecodeError, Struct, msgpack
from msgspec.structs import replace

from cloudpar_protocol.limits import BLOB_BYTES, ERROR_TEXT_CHARS, INPUT_CHARS, OUTPUT_BYTES
from cloudpar_protocol.one_line import one_line
from cloudpar_protocol.payloads import CallStyle, Codec, TaskResult
from cloudpar_worker.core.executor_result import SKIPPED, UNFIT, ExecutorResult

READY: Final = b"\0"
"""The byte that an executor sends before all frames, once it can get its first task. If an executor ends before it has
sent this byte, no task is the cause. Together with this byte the executor sends the descriptor of its own file system
for shared memory, if it has one.
"""
LENGTH: Final = struct.Struct("<I")
WAITS: Final = LENGTH.pack(1) + b"\1"
GOES_ON: Final = LENGTH.pack(1) + b"\0"
"""The two marks, as complete frames: WAITS says that the running task waits, GOES_ON that it continues."""
FILE: Final = struct.Struct("<IBQ")
"""The frame of a file: the length of the body, _FILE, and the size of the data in bytes."""
_FILE: Final = 2
_FILE_BYTES: Final = FILE.size - LENGTH.size
RUN_FILES: Final = 2
"""The most descriptors that come with a frame to an executor."""
MARKS: Final = 4_000
"""The most marks that the agent reads from one executor at a time. The executor's own code writes each mark separately,
and the channel has no room for so many writes. So only task code can have sent more marks, and to handle them would
take the agent's time.
"""
TEXTS_BYTES: Final = 2 * OUTPUT_BYTES + 8 * ERROR_TEXT_CHARS + 4 * INPUT_CHARS + 1024
"""The most bytes of a result without its data."""
_GARBAGE_CHARS: Final = 200
"""The most characters of the message about bytes that are not a result."""
EXECUTOR_OUTCOMES: Final = frozenset({"ok", "error", "unpicklable", SKIPPED, UNFIT})


Place = tuple[int, int]
"""The position of a payload's first byte in a file, and the position after its last byte."""


class Run(Struct, array_like=True, frozen=True):
    """The message to run the tasks [start, end) of one package, in order.

    Attributes:
        code_hash: The hash of the task code. If the code has a seal, the hash follows the prefix "sealed ".
        code: The bytes of the task code (with codec "msgpack", the text of a reference); None if the executor already
            has the function.
        call: How to call the function.
        start, end: The indexes of the first task and of the task after the last.
        origin, step: If the package's data is a range, the data of task i is origin + i * step.
        items: The serialized data of each task; None if the package's data is a range, or is in a file.
        codec: The codec of items and results.
        retries, retry_on: The largest number of retries of a task that raises, and the exceptions after which it is
            retried (see `failures.is_among`).
        threads: The thread limit of numeric libraries; None keeps the limit in the executor's environment.
        depth: The nesting depth of the tasks, as in Lease.
        elsewhere: Whether another worker may be able to run the tasks. If so, a task that fails because this machine
            lacks something gets the outcome UNFIT.
        aws_region: The region for AWS's libraries, if the executor's page has credentials; otherwise None.
        offline: Whether the tasks are kept from the network. All runs of an executor have the same value.
        code_place: Where the task code is in the first file that comes with the frame; None if it is not in a file.
        places: Where the data of each task is in the last file that comes with the frame; None if it is not in a file.
        takes_files: Whether the agent accepts large results as files.
    """

    code_hash: str
    code: bytes | None
    call: CallStyle
    start: int
    end: int
    origin: int = 0
    step: int = 0
    items: list[memoryview] | None = None
    codec: Codec = "pickle"
    retries: int = 0
    retry_on: list[str] = []
    threads: int | None = None
    depth: int = 0
    elsewhere: bool = False
    aws_region: str | None = None
    offline: bool = False
    code_place: Place | None = None
    places: list[Place] | None = None
    takes_files: bool = False


class Garbage(Exception):
    """Bytes that the code of an executor cannot have written."""


_encoder = msgpack.Encoder()
_run_decoder = msgpack.Decoder(Run)
_result_decoder = msgpack.Decoder(ExecutorResult)


def encode_run(run: Run) -> bytearray:
    """Encode a run as a complete frame."""
    frame = bytearray(LENGTH.size)
    _encoder.encode_into(run, frame, LENGTH.size)
    LENGTH.pack_into(frame, 0, len(frame) - LENGTH.size)
    return frame


def decode_run(body: bytes | bytearray | memoryview) -> Run:
    """Decode the run in a frame's body. The run's items refer to the memory of the body."""
    return _run_decoder.decode(body)


def encode_result_into(result: TaskResult, frame: bytearray) -> None:
    """Replace the content of `frame` by the complete frame of a result."""
    _encoder.encode_into(result, frame, LENGTH.size)
    LENGTH.pack_into(frame, 0, len(frame) - LENGTH.size)


def encode_file(size: int) -> bytes:
    """Return the complete frame of a file with `size` bytes."""
    return FILE.pack(_FILE_BYTES, _FILE, size)


def no_file(size: int) -> bytes:
    """Refuse a file from an executor that may not send files."""
    raise Garbage(f"a file of {size} bytes from an executor that may send none")


class ResultReader:
    """Reads results from bytes, and keeps the incomplete frame at the end until more bytes come.

    Args:
        memory_bytes: The memory limit of the executor. The executor's own code cannot have made a larger result, so a
            larger frame comes from task code. Without this limit, such a frame could fill the agent's memory.
        take_file: Returns the content of the next file that has come from the executor, which has this many bytes; or
            raises Garbage.
    """

    def __init__(self, memory_bytes: int, take_file: Callable[[int], bytes] = no_file) -> None:
        self._take_file = take_file
        self._data: bytes | None = None
        self._most_bytes = min(BLOB_BYTES, memory_bytes) + TEXTS_BYTES
        self._rest = bytearray()
        self._mark: bool | None = None
        self._marks = 0

    def mark(self) -> bool | None:
        """Return whether the task after the last result waits for tasks of its own; None if no new mark has arrived.

        Call this after one or more calls of `feed`. It also resets the count of marks (see MARKS).
        """
        mark, self._mark, self._marks = self._mark, None, 0
        return mark

    def feed(self, chunk: bytes | memoryview) -> list[ExecutorResult]:
        """Add bytes; return the results that are now complete.

        Raises:
            Garbage: The executor's own code cannot have written these bytes.
        """
        rest = self._rest
        rest += chunk
        results: list[ExecutorResult] = []
        offset, size = 0, len(rest)
        decode = _result_decoder.decode
        with memoryview(rest) as view:
            while size - offset >= 4:
                (length,) = LENGTH.unpack_from(rest, offset)
                end = offset + 4 + length
                if end > size:
                    if length > self._most_bytes:
                        raise Garbage(f"a frame of {length} bytes")
                    break
                if length == 1 and rest[offset + 4] <= 1:
                    self._mark = rest[offset + 4] == 1
                    self._marks += 1
                    if self._marks > MARKS:
                        raise Garbage(f"more than {MARKS} marks at once")
                    offset = end
                    continue
                if length == _FILE_BYTES and rest[offset + 4] == _FILE:
                    self._data = self._file(FILE.unpack_from(rest, offset)[2])
                    offset = end
                    continue
                try:
                    result = decode(view[offset + 4 : end])
                except (DecodeError, RecursionError, UnicodeDecodeError) as error:
                    raise Garbage(one_line(str(error), _GARBAGE_CHARS)) from None  # the error quotes bytes of task code
                _check(result, length)
                if self._data is not None:
                    result, self._data = replace(result, data=self._data), None
                results.append(result)
                self._mark = None  # the mark belongs to the task that has now ended
                offset = end
        del rest[:offset]
        return results

    def _file(self, size: int) -> bytes:
        if size > self._most_bytes or self._data is not None:
            raise Garbage(f"a file of {size} bytes that no executor sends")
        return self._take_file(size)


def _check(result: ExecutorResult, length: int) -> None:
    if result.blob is not None or result.seal is not None or result.outcome not in EXECUTOR_OUTCOMES:
        raise Garbage("a result that no executor makes")
    if length - len(result.data or b"") > TEXTS_BYTES:
        raise Garbage("a result with texts over the limits")
