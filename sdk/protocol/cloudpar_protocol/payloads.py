"""Task code, task data and results. The master does not read their bytes."""

from errno import ENOSPC
from typing import Annotated, Literal

from msgspec import Meta, Struct

from .errors import Outcome
from .limits import (
    BLOB_BYTES,
    INLINE_DATA_BYTES,
    INLINE_ITEM_BYTES,
    INPUT_CHARS,
    NESTING,
    PACKAGE_TASKS,
    PART_BYTES,
    THREADS,
)

Count = Annotated[int, Meta(ge=0, le=PACKAGE_TASKS)]
Natural = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""A whole number, 0 or more. MessagePack and the master's tables hold numbers of at most 64 bits."""
Micros = Natural
LACKS_CHARS = 300
"""The longest text about what a worker lacks, in characters; the worker cuts a longer text."""
WHY_CHARS = 500
"""The longest text about why nothing can be written, in characters; the sender cuts a longer text."""
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Seconds = Annotated[float, Meta(ge=0.0, le=1e9)]
Name = Annotated[str, Meta(max_length=200)]
Id = Annotated[str, Meta(min_length=1, max_length=200)]
Receipt = Annotated[str, Meta(min_length=1, max_length=2_000)]  # a receipt of SQS has 1,024 characters at most
Hash = Annotated[str, Meta(pattern="^[0-9a-f]{64}$", max_length=64)]  # "$" also matches before a last newline
Crc32 = Annotated[int, Meta(ge=0, lt=2**32)]
PartsCrc32 = Annotated[list[Crc32], Meta(max_length=BLOB_BYTES // PART_BYTES)]
"""zlib.crc32 of each part of a payload, in order."""
BlobKey = Annotated[str, Meta(min_length=1, max_length=500)]
UploadId = Annotated[str, Meta(min_length=1, max_length=1000)]
"""The blob store's name for an upload in parts."""
_DOTTED = r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*"
Reference = Annotated[str, Meta(pattern=rf"^{_DOTTED}:{_DOTTED}$(?!\n)", max_length=200)]
"""The name of a function at the workers: "package.module:function"."""
SEAL_BYTES = 16
Seal = Annotated[bytes, Meta(min_length=SEAL_BYTES, max_length=SEAL_BYTES)]
"""The seal of task code, of one task's data, or of a result; see `seals`."""
SealKey = Annotated[bytes, Meta(min_length=32, max_length=32)]
"""An account's key for its seals."""
Range = tuple[Count, Count]
"""Tasks [start, end) of a package."""

Retries = Annotated[int, Meta(ge=0, le=100)]
Depth = Annotated[int, Meta(ge=0, le=NESTING)]
"""The nesting depth of a package: 0 if no task started the package, otherwise one more than the depth of that task's
package."""
Threads = Annotated[int, Meta(ge=1, le=THREADS)]
"""How many threads a numeric library may start in one task."""
ExceptionNames = Annotated[list[Name], Meta(max_length=20)]
"""The names of exception classes: "ValueError" for a built-in class, "package.module.Class" for any other class."""

Input = Annotated[str, Meta(max_length=INPUT_CHARS)]
"""The arguments of a task, as a short text."""

CallStyle = Literal["value", "args", "args_kwargs"]
"""How the executor calls the task code with a task's data d: f(d), f(*d), or f(*d[0], **d[1])."""
Codec = Literal["pickle", "msgpack"]
"""How a package's task data and results are serialized. "msgpack" is only for task code by reference: then neither side
unpickles anything, and neither the Python version nor the language of the client matters."""


class BlobRef(Struct, frozen=True, array_like=True):
    """Bytes [offset, offset + size) of a blob."""

    key: BlobKey
    size: Annotated[int, Meta(ge=0, le=BLOB_BYTES)]
    offset: Annotated[int, Meta(ge=0, le=BLOB_BYTES)] = 0


class TaskCode(Struct, frozen=True):
    """A package's function, serialized or as a name. Exactly one of `inline`, `blob` and `reference` is set.

    Attributes:
        hash: SHA-256 of the serialized function, or of the reference's text.
        inline: The serialized function, if it is small.
        blob: The place of a large serialized function.
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


def inline_size(items: int, content_bytes: int) -> int:
    """Return the size of inline data that is compared with the limits, in bytes.

    >>> inline_size(2, content_bytes=10)
    20
    """
    return content_bytes + INLINE_ITEM_BYTES * items


class InlineData(Struct, frozen=True, tag="inline"):
    """Task i's data is items[i], serialized by the client.

    Attributes:
        items: The serialized data of each task. Their number is limited, because each item becomes an object in memory,
            and making the object takes time even for a small item.
        seals: The items' seals, one after the other, if the package is sealed.
    """

    items: Annotated[list[bytes], Meta(max_length=INLINE_DATA_BYTES)]
    seals: bytes = b""

    @property
    def size(self) -> int:
        """The size of this data that is compared with the limits, in bytes; see `inline_size`."""
        return inline_size(len(self.items), sum(map(len, self.items)) + len(self.seals))


class BlobData(Struct, frozen=True, tag="blob"):
    """Task i's data lies in a blob: n serialized items one after the other, then a table of their n + 1 offsets.

    An offset is 8 bytes, little-endian; the table starts at size - 8 * (n + 1). So a worker reads any range of tasks
    with two byte-range requests, or with one if it already has the table. In a sealed package, n seals of SEAL_BYTES
    each stand directly before the table.
    """

    blob: BlobRef


TaskData = RangeData | InlineData | BlobData


class TaskResult(Struct, array_like=True, frozen=True):
    """The result of one task.

    Attributes:
        index: The task's number in its package.
        outcome: With "ok", `data` or `blob` has the serialized value. With "error", the task raised, or its code or
            data could not be unpickled. Then `data` or `blob` has the serialized exception, if it can be pickled (never
            with codec "msgpack"). With "unpicklable", the package's codec cannot serialize the value, or the value is
            over BLOB_BYTES. With "unpicklable" and all other outcomes there is no value, and `message` says why.
        duration_us: The wall time in the executor by a monotonic clock, including unpickling, retries and the
            serialization of the value. The agent corrects the time if the agent's clock contradicts it. This time is
            charged.
        data: The serialized value or exception, if it is small.
        blob: The place of a large serialized value or exception.
        message: A text for users: the last line of the exception, or the reason why there is no value.
        traceback: The remote traceback, formatted.
        stdout: The task's standard output, cut to a limit, with undecodable bytes replaced.
        stderr: The task's standard error, cut to a limit, with undecodable bytes replaced.
        seal: The seal of the serialized value or exception, if the package is sealed. The worker's agent makes the
            seal; for a worker of an earlier release the master makes it.
        input: A text for users: the arguments of a task that raised, such as "value 3" or "arguments (5, b=0)", cut to
            INPUT_CHARS characters. It is not sealed.
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


Network = Literal["outbound", "none"]
"""Whether tasks may use the network. "outbound": as far as the worker permits it; "none": they may not."""


class Unfit(Struct, frozen=True):
    """A worker that cannot run a package, and why.

    Attributes:
        host: The name of the worker's machine.
        lacks: The thing that the worker lacks, as a text for users, such as "no module named 'numpy'".
    """

    host: Name
    lacks: Annotated[str, Meta(max_length=LACKS_CHARS)]


class Unwritable(Struct, frozen=True):
    """Says that a master or a worker cannot write to a folder, for example because the disk is full.

    Attributes:
        why: A text for users: the folder that cannot be written, and the operating system's message.
        errno: The operating system's error number, such as errno.ENOSPC.
    """

    why: Annotated[str, Meta(max_length=WHY_CHARS)]
    errno: Count = ENOSPC


class Link(Struct, frozen=True):
    """A presigned request for one object and one method.

    Attributes:
        method: The HTTP method.
        url: The URL. A URL that starts with "/" is relative to the endpoint by which the caller reaches the master;
            only calls with the header `Cloudpar-Links: relative` get such links. A URL that starts with "file:" leads
            to a file; only calls with the header `Cloudpar-Links: files` get such links.
        headers: The headers to send.
    """

    method: Literal["GET", "PUT", "POST"]
    url: str
    headers: dict[str, str] = {}


class Parts(Struct, frozen=True, kw_only=True):
    """One upload in parts of PART_BYTES each: a PUT for each part, in any order, then a POST that combines them.

    Attributes:
        upload_id: The id of the upload. A request with this id gets new links to the same parts. Parts that were
            already uploaded stay.
        links: A link for the PUT of each part. Each answer has an ETag, which goes into the body of the POST.
        complete: The link for the POST. The body is S3's CompleteMultipartUpload document with number, ETag and CRC-32
            of each part. Like the PUT of a whole payload, the POST succeeds only once for each key.
    """

    upload_id: UploadId
    links: list[Link]
    complete: Link
