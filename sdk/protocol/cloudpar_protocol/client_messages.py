"""Client service: start, await, cancel, acknowledge."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from .limits import BULK_ITEMS, HOLD_S, PROTOCOL_VERSION
from .payloads import (
    BlobKey,
    CallStyle,
    Codec,
    Count,
    Crc32,
    Depth,
    ExceptionNames,
    Hash,
    Id,
    Link,
    Micros,
    Name,
    Natural,
    Parts,
    PartsCrc32,
    Range,
    Retries,
    Seal,
    SealKey,
    Seconds,
    TaskCode,
    TaskData,
    TaskResult,
    Threads,
    Unfit,
    Unwritable,
    UploadId,
)

PackageState = Literal["running", "completed", "error", "failed", "cancelled", "expired"]
"""The states that await_tasks answers. "error": every task has its result, and some of these are errors."""


class Hello(Struct, frozen=True, kw_only=True):
    """Check the connection and the token."""

    v: int = PROTOCOL_VERSION


class HelloReply(Struct, frozen=True, kw_only=True):
    """The caller's role and account. `seal_key`, for users, makes and verifies their seals; None: no seals here."""

    v: int = PROTOCOL_VERSION
    release: str
    role: Literal["user", "worker", "admin"]
    account_id: str | None = None
    name: str | None = None
    granted_us: Micros = 0
    spent_us: Micros = 0
    task_timeout_s: Seconds = 0.0
    seal_key: SealKey | None = None


class Upload(Struct, frozen=True, kw_only=True):
    """A payload that is too large to travel inline.

    Attributes:
        crc32: zlib.crc32 of the payload. A second, different upload to the same link fails by it.
        hash: SHA-256 of task code, so that the same code is uploaded once.
        parts_crc32: zlib.crc32 of each part of a payload over WHOLE_BYTES, from a client that can upload parts.
        key: The key that was answered for task data whose upload goes on: the reply has fresh links for it.
        upload_id: The id that was answered for an upload in parts that goes on: the reply has fresh links for it.
    """

    kind: Literal["code", "data"]
    size: Natural
    crc32: Crc32
    hash: Hash | None = None
    parts_crc32: PartsCrc32 = []
    key: BlobKey | None = None
    upload_id: UploadId | None = None


class PrepareUploads(Struct, frozen=True, kw_only=True):
    v: int = PROTOCOL_VERSION
    uploads: Annotated[list[Upload], Meta(max_length=BULK_ITEMS)]


class PreparedUpload(Struct, frozen=True, kw_only=True):
    """Where to upload a payload; no link: it is there already. `parts` is another way to the same place."""

    key: str
    link: Link | None = None
    parts: Parts | None = None


class PrepareUploadsReply(Struct, frozen=True, kw_only=True):
    v: int = PROTOCOL_VERSION
    uploads: list[PreparedUpload]


class StartTasks(Struct, frozen=True, kw_only=True):
    """Start a package of n tasks.

    Attributes:
        idempotency_key: Makes the package id; the same key with the same body answers with the same package.
        session: The client process. Starting a package makes an await of the same session that does not name it return
            at once, whether it is held or comes next (once for each start), so that the client awaits the new package.
        name: The function's name, for people.
        codec: Of task data and results; "msgpack" if, and only if, the code is a reference.
        python: Minor version of the client's Python, "3.11". With the codec "msgpack" it is ignored.
        chunksize: Tasks of each chunk; None: the master sizes chunks from measured durations.
        task_timeout_s: Limit for all attempts of a task together, if it is lower than the operator's.
        retries: How often a task that raises is tried again, at once and by the same executor.
        retry_on: Retry only after these exceptions and subclasses of them; empty: after every Exception.
        seal: The seal of a sealed package's code and call (`seals`).
        depth: How deep the package nests. A worker runs deeper tasks while others wait for them.
        threads_per_task: The limit of numeric libraries in each task; None: the worker's own.
    """

    v: int = PROTOCOL_VERSION
    idempotency_key: Id
    session: Id = "-"
    name: Name = ""
    n: Annotated[int, Meta(ge=1, le=2**63 - 1)]
    code: TaskCode
    data: TaskData
    call: CallStyle = "value"
    codec: Codec = "pickle"
    python: Name
    chunksize: Annotated[int, Meta(ge=1, le=2**63 - 1)] | None = None
    task_timeout_s: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    retries: Retries = 0
    retry_on: ExceptionNames = []
    seal: Seal | None = None
    threads_per_task: Threads | None = None
    depth: Depth = 0


class StartTasksReply(Struct, frozen=True, kw_only=True):
    v: int = PROTOCOL_VERSION
    package_id: str


class Cursor(Struct, frozen=True, kw_only=True):
    """How far a client has read a package's results: the head version of the last page it has."""

    package_id: Id
    cursor: Natural = 0


class AwaitTasks(Struct, frozen=True, kw_only=True):
    """Read what is new of packages. An embedded master may hold the request for up to `hold_s` until something is.

    Attributes:
        unwritable: The client reads the reply's `unwritable`: a master that cannot write answers with it, and not with
            an error.
    """

    v: int = PROTOCOL_VERSION
    session: Id = "-"
    packages: Annotated[list[Cursor], Meta(min_length=1, max_length=BULK_ITEMS)]
    hold_s: Annotated[float, Meta(ge=0, le=HOLD_S)] = 0.0
    unwritable: bool = False


class Progress(Struct, frozen=True, kw_only=True):
    """How far a package is. `executors` counts those that published lately; the last three are sums over its tasks."""

    tasks: Count
    done: Count = 0
    errors: Count = 0
    executors: Count = 0
    charged_us: Micros = 0
    mean_us: Micros = 0
    execute_us: Micros = 0
    retrieve_us: Micros = 0
    publish_us: Micros = 0


class Placement(Struct, frozen=True, kw_only=True):
    """Which of the connected workers can run a package.

    Attributes:
        workers: How many workers sent requests lately.
        fitting: How many of them can run it.
        python: The version of Python that it needs; "": any.
        others: Some of the workers that cannot run it, with what they lack.
    """

    workers: Count = 0
    fitting: Count = 0
    python: Name = ""
    others: list[Unfit] = []


class PackageStatus(Struct, frozen=True, kw_only=True):
    """What is new of one package.

    Attributes:
        cursor: Send this next time.
        more: Further results are ready: send the next request at once.
        results: In the order in which they were committed, each task once.
        links: For the blobs named by `results`, by key.
        failed: Ranges of the tasks that ended in an error, at most 100 of them; progress.errors counts all.
        cancelled: Ranges of the tasks that have no result because they were cancelled one by one.
        reason: Of a failed, cancelled or expired package: a short code.
        message: The same for people, with the remedy.
        settled: The charge is final.
        codec: How `results` are serialized.
        set_aside: Workers that could not run it, so that its tasks run on others.
        placement: Of a package that no worker has run for some seconds: which workers there are.
    """

    package_id: str
    state: PackageState
    cursor: Natural
    more: bool = False
    results: list[TaskResult] = []
    links: dict[str, Link] = {}
    progress: Progress
    failed: list[Range] = []
    cancelled: list[Range] = []
    reason: str | None = None
    message: str | None = None
    settled: bool = False
    codec: Codec = "pickle"
    set_aside: list[Unfit] = []
    placement: Placement | None = None


class FleetStatus(Struct, frozen=True, kw_only=True):
    """The hosts of a deployment's workers, which come and go with the work.

    Attributes:
        running: Those that are there.
        starting: Those that are wanted and not there yet.
        message: Why no more can start, as the service says that should start them.
    """

    running: Count = 0
    starting: Count = 0
    message: str | None = None


class AwaitTasksReply(Struct, frozen=True, kw_only=True):
    """Packages in the order of the request. An unknown or deleted package has a text in `missing` instead of a status.

    `fleet` comes while one of the packages waits for its first workers, from a master that knows of a fleet.
    `unwritable` comes while the master, or a worker that shares its folder, cannot store results. It may then come
    without packages.
    """

    v: int = PROTOCOL_VERSION
    packages: list[PackageStatus]
    missing: dict[str, str] = {}
    retry_after_s: Seconds = 0.0
    fleet: FleetStatus | None = None
    unwritable: Unwritable | None = None


class CancelTasks(Struct, frozen=True, kw_only=True):
    """Cancel the whole package, or (with `ranges`) some of its tasks. The reply comes when it is decided.

    `only_queued`: tasks that a worker has go on, all others of the package are cancelled.
    """

    v: int = PROTOCOL_VERSION
    package_id: Id
    ranges: Annotated[list[Range], Meta(max_length=100)] | None = None
    only_queued: bool = False


class CancelTasksReply(Struct, frozen=True, kw_only=True):
    """`cancelled`: the tasks that will have no value because of this call (whole packages: all without a result)."""

    v: int = PROTOCOL_VERSION
    state: PackageState
    cancelled: list[Range] = []
    charged_us: Micros = 0


class Acknowledge(Struct, frozen=True, kw_only=True):
    """Free the storage of packages that the client needs no more. A running one is cancelled first."""

    v: int = PROTOCOL_VERSION
    package_ids: Annotated[list[Id], Meta(min_length=1, max_length=BULK_ITEMS)]


class AcknowledgeReply(Struct, frozen=True, kw_only=True):
    v: int = PROTOCOL_VERSION


class ListPackages(Struct, frozen=True, kw_only=True):
    """The account's packages, newest first; an admin sees every account's."""

    v: int = PROTOCOL_VERSION
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class PackageSummary(Struct, frozen=True, kw_only=True):
    """One package of a list. `reason`, `message` and `set_aside` as in PackageStatus."""

    package_id: str
    account_id: str
    name: str
    state: PackageState
    started_at: float
    ended_at: float | None = None
    progress: Progress
    reason: str | None = None
    message: str | None = None
    set_aside: list[Unfit] = []


class ListPackagesReply(Struct, frozen=True, kw_only=True):
    """`executors` published lately for any running package listed, each counted once; None: the master is older."""

    v: int = PROTOCOL_VERSION
    packages: list[PackageSummary]
    executors: Count | None = None
