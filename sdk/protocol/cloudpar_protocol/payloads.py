"""What tasks carry: their code, their data, their results. All of it opaque bytes to the master."""

from errno import ENOSPC
from typing import Annotated, Literal

from msgspec import Meta, Struct

from .errors import Outcome
from .limits import BLOB_BYTES, INPUT_CHARS, NESTING, PACKAGE_TASKS, PART_BYTES, THREADS

Count = Annotated[int, Meta(ge=0, le=PACKAGE_TASKS)]
Natural = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""No number on the wire is wider than 64 bits: MessagePack and the tables hold no more."""
Micros = Natural
LACKS_CHARS = 300
"""Of the sentence what a worker lacks; the worker cuts a longer one."""
WHY_CHARS = 500
"""The limit of the text that says why nothing can be written; its author cuts a longer one."""
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Seconds = Annotated[float, Meta(ge=0.0, le=1e9)]
Name = Annotated[str, Meta(max_length=200)]
Id = Annotated[str, Meta(min_length=1, max_length=200)]
Receipt = Annotated[str, Meta(min_length=1, max_length=2_000)]  # SQS's have 1,024 characters at most
Hash = Annotated[str, Meta(pattern="^[0-9a-f]{64}$", max_length=64)]  # "$" alone lets a newline pass
Crc32 = Annotated[int, Meta(ge=0, lt=2**32)]
PartsCrc32 = Annotated[list[Crc32], Meta(max_length=BLOB_BYTES // PART_BYTES)]
"""zlib.crc32 of each part of a payload, in order."""
BlobKey = Annotated[str, Meta(min_length=1, max_length=500)]
UploadId = Annotated[str, Meta(min_length=1, max_length=1000)]
"""The blob store's name for an upload in parts."""
_DOTTED = r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*"
Reference = Annotated[str, Meta(pattern=rf"^{_DOTTED}:{_DOTTED}$(?!\n)", max_length=200)]
"""A function by its name at the workers: "package.module:function"."""
SEAL_BYTES = 16
Seal = Annotated[bytes, Meta(min_length=SEAL_BYTES, max_length=SEAL_BYTES)]
"""See `seals`."""
SealKey = Annotated[bytes, Meta(min_length=32, max_length=32)]
"""An account's key for its seals."""
Range = tuple[Count, Count]
"""Tasks [start, end) of a package."""

Retries = Annotated[int, Meta(ge=0, le=100)]
Depth = Annotated[int, Meta(ge=0, le=NESTING)]
"""0: of a package that no task has started. Otherwise one more than that of the task that has started it."""
Threads = Annotated[int, Meta(ge=1, le=THREADS)]
"""How many threads a numeric library may start in one task."""
ExceptionNames = Annotated[list[Name], Meta(max_length=20)]
"""Classes of exceptions: "ValueError" of the built-in ones, "package.module.Class" of others."""

Input = Annotated[str, Meta(max_length=INPUT_CHARS)]
"""What a task was called with, as a short text."""

CallStyle = Literal["value", "args", "args_kwargs"]
"""How the executor calls the task code with a task's data d: f(d), f(*d), or f(*d[0], **d[1])."""
Codec = Literal["pickle", "msgpack"]
"""How a package's task data and results are serialized. "msgpack" goes with task code by reference: then nothing is
unpickled on either side, and neither the Python version nor the language of the client matters."""


class BlobRef(Struct, frozen=True, array_like=True):
    """Bytes [offset, offset + size) of a blob."""

    key: BlobKey
    size: Annotated[int, Meta(ge=0, le=BLOB_BYTES)]
    offset: Annotated[int, Meta(ge=0, le=BLOB_BYTES)] = 0


class TaskCode(Struct, frozen=True):
    """The function, serialized or by its name. Exactly one of `inline`, `blob` and `reference` is set.

    Attributes:
        hash: SHA-256 of the serialized function, or of the reference's text.
        inline: The serialized function, if it is small.
        blob: Where it lies otherwise.
        reference: The function's name; the workers import it.
    """

    hash: Hash
    inline: bytes | None = None
    blob: BlobRef | None = None
    reference: Reference | None = None


class RangeData(Struct, frozen=True, tag="range"):
    """Task i's data is the integer start + i * step."""

    start: Int64
    step: Int64


class InlineData(Struct, frozen=True, tag="inline"):
    """Task i's data is items[i], serialized by the client.

    Attributes:
        seals: Of a sealed package: theirs, one after the other.
    """

    items: list[bytes]
    seals: bytes = b""


class BlobData(Struct, frozen=True, tag="blob"):
    """Task i's data lies in a blob: n serialized items one after the other, then a table of their n + 1 offsets.

    An offset is 8 bytes, little-endian; the table starts at size - 8 * (n + 1). So a worker reads any range of
    tasks with two byte-range requests, or one once it has the table. Of a sealed package, the n seals of SEAL_BYTES
    each stand right before the table.
    """

    blob: BlobRef


TaskData = RangeData | InlineData | BlobData


class TaskResult(Struct, array_like=True, frozen=True):
    """What became of one task.

    Attributes:
        index: The task's number in its package.
        outcome: "ok": `data` is the serialized value. "error": the task code raised; `data` is the serialized
            exception if it pickles (with codec "msgpack" there is none). Everything else: no value, and `message` says
            why; "unpicklable": the value cannot be serialized by the package's codec.
        duration_us: Monotonic wall time in the executor, unpickling included; this is what is charged.
        data: The serialized value or exception, if it is small.
        blob: Where it lies otherwise.
        message: For people: the exception's line, or the reason.
        traceback: The remote traceback, formatted.
        stdout: What the task wrote to standard output, bounded, undecodable bytes replaced.
        stderr: The same for standard error.
        seal: Of a sealed package: on `data`, by the worker's agent.
        input: Of a task that raised, for people: what it was called with, such as "value 3" or "arguments (5, b=0)",
            cut to INPUT_CHARS characters. It is not sealed.
    """

    index: Count
    outcome: Outcome
    duration_us: Micros
    data: bytes | None = None
    blob: BlobRef | None = None
    message: str | None = None
    traceback: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    seal: Seal | None = None
    input: Input | None = None


class Unfit(Struct, frozen=True):
    """A worker that cannot run a package, and why.

    Attributes:
        host: The name of its machine.
        lacks: For people: "no module named 'numpy'".
    """

    host: Name
    lacks: Annotated[str, Meta(max_length=LACKS_CHARS)]


class Unwritable(Struct, frozen=True):
    """A master or a worker that cannot write, such as on a full disk.

    Attributes:
        why: For people: which folder cannot be written, and what the system says.
        errno: The number of the system's error on that machine, such as errno.ENOSPC.
    """

    why: Annotated[str, Meta(max_length=WHY_CHARS)]
    errno: Count = ENOSPC


class Link(Struct, frozen=True):
    """A presigned request for one object and one method.

    Attributes:
        method: What to request.
        url: Where. One that starts with "/" follows the endpoint by which the caller reaches the master; such links are
            answered only to calls with the header `Cloudpar-Links: relative`.
        headers: What to send with the request.
    """

    method: Literal["GET", "PUT", "POST"]
    url: str
    headers: dict[str, str] = {}


class Parts(Struct, frozen=True, kw_only=True):
    """One upload in parts of PART_BYTES each: a PUT for each, in any order, then a POST that makes them one payload.

    Attributes:
        upload_id: Brings fresh links to the same parts when it is sent back; those that are there stay.
        links: One a part. The answer's ETag goes into the POST.
        complete: Its body is the list of parts as S3 takes it: a CompleteMultipartUpload document with number, ETag and
            CRC-32 of each. It succeeds once for a key, as the PUT of the whole does.
    """

    upload_id: UploadId
    links: list[Link]
    complete: Link
