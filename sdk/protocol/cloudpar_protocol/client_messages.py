"""Client service: start, await, cancel and acknowledge packages."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from .limits import BULK_ITEMS, HOLD_S
from .message import Message
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
"""A package's state in replies. "error": the package has completed, and some of its results are errors. "expired": the
master no longer keeps its results."""


class Hello(Message, frozen=True, kw_only=True):
    """Check the connection and the token.

    If `package_id` names a package of the account, `seal_key` in the reply is the key with which this package was
    sealed. It may be an earlier key of the account, because an operator may rotate the key.
    """

    package_id: Id | None = None


class HelloReply(Message, frozen=True, kw_only=True):
    """The caller's role and account. Workers and admins have no account.

    `seal_key` is the key of the account's seals. If the request names no package, this is the key for new packages.
    `seal_key` is None if the caller has no account. It is also None if this master has no keys for seals; then new
    packages are not sealed.
    """

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
        crc32: zlib.crc32 of the payload. An upload by HTTP fails if its bytes have a different checksum.
        hash: SHA-256 of task code, so that the same code is uploaded only once; None for task data.
        parts_crc32: zlib.crc32 of each part, if the payload is larger than WHOLE_BYTES and the client can upload parts;
            otherwise empty.
        key: If this request continues an upload of task data, the key from the earlier reply; the new reply has new
            links for this key. Otherwise None.
        upload_id: If this request continues an upload in parts, the id from the earlier reply; the new reply has new
            links for the parts of that upload. Otherwise None.
    """

    kind: Literal["code", "data"]
    size: Natural
    crc32: Crc32
    hash: Hash | None = None
    parts_crc32: PartsCrc32 = []
    key: BlobKey | None = None
    upload_id: UploadId | None = None


class PrepareUploads(Message, frozen=True, kw_only=True):
    uploads: Annotated[list[Upload], Meta(max_length=BULK_ITEMS)]


class PreparedUpload(Struct, frozen=True, kw_only=True):
    """The place and the links for the upload of a payload.

    Attributes:
        key: The payload's key in the blob store.
        link: The link for the upload; None if the blob store has the payload already.
        parts: Links for an upload in parts, which the client may use in place of `link`; None if it can only use
            `link`.
    """

    key: str
    link: Link | None = None
    parts: Parts | None = None


class PrepareUploadsReply(Message, frozen=True, kw_only=True):
    uploads: list[PreparedUpload]


class StartTasks(Message, frozen=True, kw_only=True):
    """Start a package of n tasks.

    Attributes:
        idempotency_key: The master derives the package id from this key, the account, and whether the package is
            sealed. If the client repeats the request with the same key, the reply names the same package.
        session: The id of the client's session. After the start, the master answers the session's held await at once
            or, if no await is held, does not hold the next one. So the client can send an await that names the new
            package. An await that already names the new package is held as usual.
        name: The function's name, for users.
        codec: The format of serialized task data and results; "msgpack" if, and only if, the code is a reference.
        python: The minor version of the client's Python, such as "3.11". The master ignores it if the codec is
            "msgpack".
        chunksize: The largest number of tasks in a chunk; None: the master sizes chunks from measured durations.
        task_timeout_s: The time limit for a task including its retries. The operator's limit applies instead if it is
            lower, or if this is None.
        retries: How often a task that raises an exception is retried, immediately and by the same executor.
        retry_on: The classes of exceptions after which a task is retried, including their subclasses. Empty: every
            Exception.
        seal: The seal of the task code and of how it is called (see `seals`); None if the package is not sealed.
        depth: The nesting depth: 0, or one more than the depth of the task that starts this package. While tasks wait
            for packages that they started, a worker runs tasks of a greater depth.
        threads_per_task: The number of threads that a numeric library may start in each task; None: the worker decides.
    """

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


class StartTasksReply(Message, frozen=True, kw_only=True):
    package_id: str


class Cursor(Struct, frozen=True, kw_only=True):
    """The position up to which a client has read a package's results.

    `cursor` is the `cursor` of the last PackageStatus that the client has read; 0 if it has read none.
    """

    package_id: Id
    cursor: Natural = 0


class AwaitTasks(Message, frozen=True, kw_only=True):
    """Read the news of packages: their new results and their states.

    An embedded master may hold the request until there is news, but at most for `hold_s`.

    Attributes:
        session: See StartTasks.
        hold_s: The longest time to hold the request, in seconds; 0: the master answers at once.
        unwritable: Whether the client understands the field `unwritable` of the reply. If so, a master that cannot
            write sets that field in its reply. A client that does not understand it may get an error instead.
    """

    session: Id = "-"
    packages: Annotated[list[Cursor], Meta(min_length=1, max_length=BULK_ITEMS)]
    hold_s: Annotated[float, Meta(ge=0, le=HOLD_S)] = 0.0
    unwritable: bool = False


class Progress(Struct, frozen=True, kw_only=True):
    """A package's progress. All times are in microseconds.

    Attributes:
        tasks: The number of the package's tasks.
        done: The number of these tasks that have a result or were cancelled.
        errors: The number of results whose outcome is not "ok".
        executors: The number of executors of all workers that published results of the package lately.
        charged_us: The compute time that was charged so far.
        mean_us: The mean duration of the last tasks that ran to their end; 0 if it is unknown.
        execute_us, retrieve_us, publish_us: The total time that running the tasks, retrieving them, and publishing
            their results took.
    """

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
    """Says how many of the connected workers can run a package.

    Attributes:
        workers: The number of workers that have sent requests recently.
        fitting: The number of these workers that can run the package.
        python: The version of Python that the package needs; "": any.
        others: Some workers that cannot run the package, with what they lack.
    """

    workers: Count = 0
    fitting: Count = 0
    python: Name = ""
    others: list[Unfit] = []


class PackageStatus(Struct, frozen=True, kw_only=True):
    """The news of one package.

    Attributes:
        cursor: The cursor that the client sends with its next await.
        more: Whether further results are ready, so that the client sends its next request at once.
        results: New results in the order in which they were committed, each task once.
        links: Links for the blobs that `results` name, by key.
        failed: Ranges of tasks that ended in an error, at most 100 ranges; progress.errors counts all such tasks.
        cancelled: Ranges of tasks that were cancelled while the other tasks of the package ran on. They have no result.
            If the package itself was cancelled, its other tasks without a result may be among them.
        reason: A short code that says why the package failed, was cancelled or expired.
        message: The reason in words for users.
        settled: Whether the charge is final.
        codec: The format of the serialized `results`.
        set_aside: The first workers that could not run the package and therefore left its tasks to other workers.
        placement: How many workers are connected, and how many of them can run the package. This field is present if
            the package is running and started some seconds ago, and no worker has published its results lately.
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
    """The hosts (machines) of a deployment's workers. They start and stop with the load.

    Attributes:
        running: The number of hosts that are running.
        starting: The number of hosts that are wanted and not running yet.
        message: A text for users; None if there is no problem. While hosts are starting, the text says why the last
            start failed, or for what the start waits, in the words of the service that starts hosts. If no host runs or
            is starting, the text says when the fleet may grow again.
    """

    running: Count = 0
    starting: Count = 0
    message: str | None = None


class AwaitTasksReply(Message, frozen=True, kw_only=True):
    """The news of packages, in the order of the request.

    Attributes:
        missing: For each package without a status, by package id, a text that says why: this account does not have the
            package, or the package was deleted over a day ago.
        retry_after_s: The seconds after which the client sends its next await if there is no news.
        fleet: Present while one of the packages waits for workers, if the master knows of a fleet.
        unwritable: Present while the master, or a worker that shares the master's folder, cannot store results. The
            reply may then contain no packages.
    """

    packages: list[PackageStatus]
    missing: dict[str, str] = {}
    retry_after_s: Seconds = 0.0
    fleet: FleetStatus | None = None
    unwritable: Unwritable | None = None


class CancelTasks(Message, frozen=True, kw_only=True):
    """Cancel a whole package, or some of its tasks.

    Attributes:
        ranges: The tasks to cancel; None: the whole package.
        only_queued: Whether to cancel only the tasks that no worker has taken. A chunk in the queue is then cancelled
            when the queue delivers it. A request must not have both `only_queued` and `ranges`.
    """

    package_id: Id
    ranges: Annotated[list[Range], Meta(max_length=100)] | None = None
    only_queued: bool = False


class CancelTasksReply(Message, frozen=True, kw_only=True):
    """The tasks that have been cancelled.

    Attributes:
        state: The package's state after the call.
        cancelled: The cancelled tasks. If the whole package is cancelled, these are all tasks without a result, except
            those that a worker has already reported as stopped. With `ranges`, these are the cancelled tasks of the
            ranges. With `only_queued`, these are the tasks that are cancelled at once; the tasks in the queue are
            cancelled later.
        charged_us: The compute time that was charged for the package so far.
    """

    state: PackageState
    cancelled: list[Range] = []
    charged_us: Micros = 0


class Acknowledge(Message, frozen=True, kw_only=True):
    """Free the storage of packages whose results are no longer needed. A running package is cancelled first."""

    package_ids: Annotated[list[Id], Meta(min_length=1, max_length=BULK_ITEMS)]


class AcknowledgeReply(Message, frozen=True, kw_only=True):
    pass


class ListPackages(Message, frozen=True, kw_only=True):
    """List the account's packages, newest first. An admin gets the packages of all accounts.

    If there are more than `limit` packages, the list leaves out ended packages before running ones. With `package_id`,
    the list has only the package with this id, however old it is. A master of an earlier release ignores `package_id`.
    """

    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    package_id: Id | None = None


class PackageSummary(Struct, frozen=True, kw_only=True):
    """One package of a list. `reason`, `message` and `set_aside` mean the same as in PackageStatus."""

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


class ListPackagesReply(Message, frozen=True, kw_only=True):
    """The packages, and the number of executors that work for them.

    Attributes:
        executors: The number of executors of all workers that lately published results of the running packages in this
            list. A worker that serves several packages counts once. None from a master of an earlier release.
    """

    packages: list[PackageSummary]
    executors: Count | None = None
