"""What agent and executor say to each other: frames of 4 bytes little-endian length and a MessagePack body.

Towards the executor a frame is a Run. Towards the agent a frame is a TaskResult, one for each task of a run, in order;
or a mark of one byte, which says whether the task that runs waits for tasks of its own.
The agent takes nothing that comes back for granted: task code can write to any descriptor.
"""

import struct
from typing import Final

from msgspec import DecodeError, Struct, msgpack

from cloudpar_protocol.limits import BLOB_BYTES, ERROR_TEXT_CHARS, INPUT_CHARS, OUTPUT_BYTES
from cloudpar_protocol.payloads import CallStyle, Codec, TaskResult
from cloudpar_worker.core.executor_result import SKIPPED, UNFIT, ExecutorResult

READY: Final = b"\0"
"""An executor's first byte, before it has any task: what ends before that is no task's doing."""
LENGTH: Final = struct.Struct("<I")
WAITS: Final = LENGTH.pack(1) + b"\1"
GOES_ON: Final = LENGTH.pack(1) + b"\0"
"""The marks, as whole frames."""
TEXTS_BYTES: Final = 2 * OUTPUT_BYTES + 8 * ERROR_TEXT_CHARS + 4 * INPUT_CHARS + 1024
"""All that a result holds besides its data, at most."""
FRAME_BYTES: Final = BLOB_BYTES + TEXTS_BYTES
EXECUTOR_OUTCOMES: Final = frozenset({"ok", "error", "unpicklable", SKIPPED, UNFIT})


class Run(Struct, array_like=True, frozen=True):
    """Run the tasks [start, end) of one package, in order.

    Attributes:
        code_hash: Which task code.
        code: Its bytes (with codec "msgpack" a reference's text); None when the executor has the function in its cache.
        call: How it is called.
        start, end: The tasks.
        origin, step: Of range data: task i's data is origin + i * step.
        items: The serialized data of each task; None for range data.
        codec: Of the items and the results.
        retries, retry_on: How often a task that raises is tried again, and after which exceptions.
        threads: The limit of numeric libraries; None: what the executor started with.
        depth: As in the lease.
        elsewhere: A task that fails for what this machine lacks has no result: it runs on another one (`UNFIT`).
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
    """Bytes that are no result of an executor."""


_encoder = msgpack.Encoder()
_run_decoder = msgpack.Decoder(Run)
_result_decoder = msgpack.Decoder(ExecutorResult)


def encode_run(run: Run) -> bytearray:
    """The whole frame."""
    frame = bytearray(LENGTH.size)
    _encoder.encode_into(run, frame, LENGTH.size)
    LENGTH.pack_into(frame, 0, len(frame) - LENGTH.size)
    return frame


def decode_run(body: bytes | bytearray | memoryview) -> Run:
    """A run from a frame's body; its items are views into it."""
    return _run_decoder.decode(body)


def encode_result_into(result: TaskResult, frame: bytearray) -> None:
    """Make `frame` the whole frame of a result."""
    _encoder.encode_into(result, frame, LENGTH.size)
    LENGTH.pack_into(frame, 0, len(frame) - LENGTH.size)


class ResultReader:
    """Bytes in, results out; keeps the part of a frame that has not come yet."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._mark: bool | None = None

    def mark(self) -> bool | None:
        """Whether the task behind the last result waits for tasks of its own; None: nothing new was said."""
        mark, self._mark = self._mark, None
        return mark

    def feed(self, chunk: bytes | memoryview) -> list[ExecutorResult]:
        """The results that are complete with this chunk.

        Raises:
            Garbage: These bytes do not come from the executor's own code.
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
                    if length > FRAME_BYTES:
                        raise Garbage(f"a frame of {length} bytes")
                    break
                if length == 1 and rest[offset + 4] <= 1:
                    self._mark = rest[offset + 4] == 1
                    offset = end
                    continue
                try:
                    result = decode(view[offset + 4 : end])
                except (DecodeError, RecursionError, UnicodeDecodeError) as error:
                    raise Garbage(str(error)) from None
                _check(result, length)
                results.append(result)
                self._mark = None  # it was of a task that has ended
                offset = end
        del rest[:offset]
        return results


def _check(result: ExecutorResult, length: int) -> None:
    if result.blob is not None or result.seal is not None or result.outcome not in EXECUTOR_OUTCOMES:
        raise Garbage("a result that no executor makes")
    if length - len(result.data or b"") > TEXTS_BYTES:
        raise Garbage("a result with texts over the limits")
