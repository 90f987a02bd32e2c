"""The messages between an agent and its executors, which are frames.

A frame is the length of its body (4 bytes, little-endian) and the body. The body of a frame to an executor is a Run, in
MessagePack. The body of a frame to the agent is a result or a mark. A result is an ExecutorResult in MessagePack; the
executor sends one for each task of a run, in order. A mark is one byte, which says whether the running task waits for
tasks of its own. The agent checks everything that it receives, because task code can write to any descriptor.
"""

import struct
from typing import Final

from msgspec import DecodeError, Struct, msgpack

from cloudpar_protocol.limits import BLOB_BYTES, ERROR_TEXT_CHARS, INPUT_CHARS, OUTPUT_BYTES
from cloudpar_protocol.one_line import one_line
from cloudpar_protocol.payloads import CallStyle, Codec, TaskResult
from cloudpar_worker.core.executor_result import SKIPPED, UNFIT, ExecutorResult

READY: Final = b"\0"
"""The byte that an executor sends, before all frames, when it can get its first task. If the executor ends before it
has sent this byte, no task is the cause.
"""
LENGTH: Final = struct.Struct("<I")
WAITS: Final = LENGTH.pack(1) + b"\1"
GOES_ON: Final = LENGTH.pack(1) + b"\0"
"""The marks, as complete frames: the running task waits, or goes on."""
MARKS: Final = 4_000
"""The most marks that are read from one executor at a time. The executor's own code writes each mark alone, and the
channel has no room for so many writes, so more marks come from task code. They would take the agent's time.
"""
TEXTS_BYTES: Final = 2 * OUTPUT_BYTES + 8 * ERROR_TEXT_CHARS + 4 * INPUT_CHARS + 1024
"""The most bytes of a result without its data."""
_GARBAGE_CHARS: Final = 200
"""The most characters of the text about bytes that are no result."""
EXECUTOR_OUTCOMES: Final = frozenset({"ok", "error", "unpicklable", SKIPPED, UNFIT})


class Run(Struct, array_like=True, frozen=True):
    """Run the tasks [start, end) of one package, in order.

    Attributes:
        code_hash: The hash of the task code, after "sealed " if the code has a seal.
        code: Its bytes (with codec "msgpack", the text of a reference); None if the executor has the function already.
        call: How to call the function.
        start, end: The tasks.
        origin, step: Of range data: the data of task i is origin + i * step.
        items: The serialized data of each task; None for range data.
        codec: The codec of items and results.
        retries, retry_on: How often a task that raises is retried, and after which exceptions (see
            `failures.is_among`).
        threads: The thread limit of numeric libraries; None: the executor's own limit.
        depth: As in the lease.
        elsewhere: Another worker may be able to run the tasks. So if a task fails because of something that this
            machine lacks, its outcome is UNFIT.
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


class Garbage(Exception):
    """Bytes that the code of an executor cannot have written."""


_encoder = msgpack.Encoder()
_run_decoder = msgpack.Decoder(Run)
_result_decoder = msgpack.Decoder(ExecutorResult)


def encode_run(run: Run) -> bytearray:
    """The complete frame of a run."""
    frame = bytearray(LENGTH.size)
    _encoder.encode_into(run, frame, LENGTH.size)
    LENGTH.pack_into(frame, 0, len(frame) - LENGTH.size)
    return frame


def decode_run(body: bytes | bytearray | memoryview) -> Run:
    """The run in a frame's body; its items are views into the body."""
    return _run_decoder.decode(body)


def encode_result_into(result: TaskResult, frame: bytearray) -> None:
    """Turn `frame` into the complete frame of a result."""
    _encoder.encode_into(result, frame, LENGTH.size)
    LENGTH.pack_into(frame, 0, len(frame) - LENGTH.size)


class ResultReader:
    """Reads results from bytes, and keeps the incomplete frame at their end.

    Args:
        memory_bytes: The memory limit of the executor. The executor's own code cannot have made a larger result, so a
            larger frame comes from task code. Without the check, such a frame could fill the agent's memory.
    """

    def __init__(self, memory_bytes: int) -> None:
        self._most_bytes = min(BLOB_BYTES, memory_bytes) + TEXTS_BYTES
        self._rest = bytearray()
        self._mark: bool | None = None
        self._marks = 0

    def mark(self) -> bool | None:
        """Whether the task after the last result waits for tasks of its own; None if no new mark has arrived.

        Call it after each `feed`, or after several of them: it also starts to count marks from 0 (see MARKS).
        """
        mark, self._mark, self._marks = self._mark, None, 0
        return mark

    def feed(self, chunk: bytes | memoryview) -> list[ExecutorResult]:
        """The results that are complete with this chunk.

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
                try:
                    result = decode(view[offset + 4 : end])
                except (DecodeError, RecursionError, UnicodeDecodeError) as error:
                    raise Garbage(one_line(str(error), _GARBAGE_CHARS)) from None  # it quotes what task code wrote
                _check(result, length)
                results.append(result)
                self._mark = None  # the mark belonged to the task that has now ended
                offset = end
        del rest[:offset]
        return results


def _check(result: ExecutorResult, length: int) -> None:
    if result.blob is not None or result.seal is not None or result.outcome not in EXECUTOR_OUTCOMES:
        raise Garbage("a result that no executor makes")
    if length - len(result.data or b"") > TEXTS_BYTES:
        raise Garbage("a result with texts over the limits")
