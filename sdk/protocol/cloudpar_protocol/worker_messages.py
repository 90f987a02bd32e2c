"""Worker service: retrieve tasks, prepare and publish results, extend leases, give tasks back. All in bulk."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from .limits import BULK_ITEMS, HOLD_S, PUBLICATION_TASKS
from .message import Message
from .payloads import (
    CallStyle,
    Codec,
    Crc32,
    Depth,
    ExceptionNames,
    Id,
    Link,
    Micros,
    Name,
    Natural,
    Network,
    Parts,
    PartsCrc32,
    Range,
    Receipt,
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

LeaseState = Literal["wanted", "finished", "ended"]
"""What the worker does with a lease. "wanted": it continues with the given ranges. "finished": nothing of this lease is
left to do. "ended": the package was cancelled, failed or deleted, so the worker stops the running tasks of the lease,
publishes them with the time that they took, and drops the other tasks."""


class RetrieveTasks(Message, frozen=True, kw_only=True):
    """Retrieve up to `chunks` chunks, but never more than RETRIEVED_CHUNKS.

    Attributes:
        attempt_id: The id of this retrieval. A repeated request with the same id returns the same chunks, if it comes
            within 5 minutes and before the leases end.
        worker_id: The id of this agent.
        executors: The number of the agent's executors, busy or not.
        hold_s: The longest time to hold the request, in seconds; 0: the master answers at once.
        host: The name of the agent's machine, for users.
        pythons: The minor versions of Python that the executors can run, such as "3.11". Empty: the worker is of an
            earlier release, which does not report versions, and gets chunks for every Python.
        set_aside: The packages that the worker cannot run, because it lacks something that they need.
        besides: The packages of which the worker already has tasks that have not started. The worker gets only chunks
            of other packages. If the master's queue cannot choose among messages, the worker gets first chunks of any
            packages instead.
        peek: Whether to lease nothing, and to answer only whether a chunk of a package that is not in `besides` waits.
        again: Whether the worker has sent this request before, and got no answer.
        idle: Whether the worker has no leases. The master may then give it a single chunk, because the worker does not
            know yet how long a chunk keeps its executors busy.
        own: Whether the tasks of this worker have the rights of the worker's user. If so, the worker runs only tasks of
            the master's default account.
        credentials: Whether the worker can give AWS credentials to the tasks of one account in such a way that the
            tasks of other accounts cannot read them. Other workers get no credentials.
        offline: Whether the worker can keep the tasks of an account from the network. Other workers get no leases of
            accounts whose tasks may not use the network.
    """

    attempt_id: Id
    worker_id: Id
    executors: Annotated[int, Meta(ge=1, le=10_000)]
    chunks: Annotated[int, Meta(ge=1, le=BULK_ITEMS)]
    hold_s: Annotated[float, Meta(ge=0, le=HOLD_S)] = 0.0
    host: Name = ""
    pythons: Annotated[list[Name], Meta(max_length=20)] = []
    set_aside: Annotated[list[Id], Meta(max_length=BULK_ITEMS)] = []
    besides: Annotated[list[Id], Meta(max_length=BULK_ITEMS)] = []
    peek: bool = False
    again: bool = False
    idle: bool = False
    own: bool = False
    credentials: bool = False
    offline: bool = False


class TaskCredentials(Struct, frozen=True, kw_only=True):
    """Temporary AWS credentials for the tasks of one package. No log and no text of an error contains them.

    Attributes:
        expires_at: The time at which they expire, in seconds since 1970.
        region: The AWS region of the deployment, as a default for tasks.
    """

    package_id: str
    access_key_id: str
    secret_access_key: str
    session_token: str
    expires_at: float
    region: str = ""

    def __repr__(self) -> str:
        # A text of an error may quote a lease, and such texts end in logs.
        return f"TaskCredentials(package_id={self.package_id!r}, expires_at={self.expires_at!r}, ...)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("package_id", self.package_id), ("expires_at", self.expires_at)]


class LeaseRef(Struct, frozen=True, kw_only=True):
    """Identifies a lease and its chunk.

    Attributes:
        package_id: The package whose tasks are leased.
        lease_id: The id of the lease, which is new for each retrieval of the chunk. It is part of the keys of the
            lease's result blobs.
        receipt: The queue's handle, with which the master extends or deletes the queue message.
        start, end, generation: The chunk: the tasks [start, end) of the package, and the version of the head that cut
            them.
    """

    package_id: Id
    lease_id: Id
    receipt: Receipt
    start: Natural
    end: Natural
    generation: Natural

    def identity(self) -> dict[str, Any]:
        """Return these fields as keyword arguments for another message about the same lease."""
        return {name: getattr(self, name) for name in LeaseRef.__struct_fields__}


class Lease(LeaseRef, frozen=True, kw_only=True):
    """The right to run a chunk's tasks for `lease_s` seconds, counted from the reply that contains the lease.

    Attributes:
        ranges: The tasks of the chunk that the worker has to run, in order; usually all tasks of the chunk.
        attempt: The number of times that the chunk's tasks were leased, including this lease. Leases whose tasks were
            given back do not count.
        account: An opaque id of the account. An executor never runs tasks of two accounts.
        code, code_link: The task code; the link is for code that is not inline.
        data: The task data. RangeData and a blob are for the whole package; inline data has only the items of the tasks
            in `ranges`, in order.
        data_link: The link to a blob of data; it allows requests for byte ranges.
        tasks: The number of tasks of the package. The worker needs it to find the table of offsets in a blob of data.
        codec: The format of serialized task data and results. With "msgpack" the code is a reference, and the worker
            ignores `python`.
        mean_us: The mean duration of the package's most recent tasks, in microseconds; 0 if it is unknown.
        wait_us: How long the chunk waited in the queue, in microseconds. The worker repeats this time in its
            publications.
        task_timeout_s: The time limit for one task, in seconds.
        python, threads_per_task, depth: See StartTasks.
        retries, retry_on: See StartTasks. All tries of a task together count for its charge and its time limit.
        budget_us: The compute time that the package may still use, in microseconds. When the package's tasks on this
            worker have used up this time, the worker stops those that run.
        collect_us: For how many microseconds the worker may collect results before it publishes them, as long as all
            its executors have work. This saves requests, which may cost money.
        beat_s: The longest time between two renewals of the lease, in seconds. If it is 0, or longer than a third of
            `lease_s`, a third of `lease_s` counts instead. Beats renew leases. If `beat_s` of all the worker's leases
            is above 0, publications may renew them, too (`PublishResults.others`). The replies to beats and to
            publications also say whether the first chunk of a package waits (`waiting`).
        seal, seal_key: The seal of the task code, and the account's key, if the package is sealed. Executors never see
            the key.
        elsewhere: Whether another worker may be able to run the package. If so, a worker that lacks something for the
            package gives the chunk back with the reason (`unfit`). If not, the worker runs the tasks nevertheless, and
            their errors say what is missing. But if the worker lacks the package's Python version or cannot download
            its code or data, it refuses the lease, and the package fails. A worker that cannot keep tasks from the
            network always gives back tasks with `network` "none". A master of an earlier release never sets this field.
        credentials: The credentials of the account's IAM role. The worker gives them only to executors of this account.
            None if the account has no role, or if the worker has not set `RetrieveTasks.credentials`.
        network: Whether the tasks may use the network. The master gives leases with "none" only to workers that have
            set `RetrieveTasks.offline`.
    """

    package_id: str  # not bounded as in requests: a worker accepts every id that a master gives
    lease_id: str
    receipt: str
    ranges: list[Range]
    attempt: Natural = 1
    account: str
    lease_s: Seconds
    code: TaskCode
    code_link: Link | None = None
    data: TaskData
    data_link: Link | None = None
    tasks: Natural
    call: CallStyle = "value"
    codec: Codec = "pickle"
    python: str
    mean_us: Micros = 0
    wait_us: Micros = 0
    task_timeout_s: Seconds
    budget_us: Micros
    collect_us: Micros = field(name="publish_us", default=200_000)
    beat_s: Seconds = 0.0
    retries: Retries = 0
    retry_on: ExceptionNames = []
    seal: Seal | None = None
    seal_key: SealKey | None = None
    threads_per_task: Threads | None = None
    elsewhere: bool = False
    depth: Depth = 0
    credentials: TaskCredentials | None = None
    network: Network = "outbound"


class RetrieveTasksReply(Message, frozen=True, kw_only=True):
    """The leases that the worker gets.

    Attributes:
        retry_after_s: If there is no lease, the worker sends its next request after this many seconds.
        holds: Whether this master holds requests, so that a busy worker may keep a `peek` open.
        waiting: For a request with `peek` or `besides`: whether a chunk of a package that is not in `besides` waits. If
            the queue cannot choose among messages, this says whether the first chunk of any package waits.
    """

    leases: list[Lease] = []
    retry_after_s: Seconds = 0.0
    holds: bool = False
    waiting: bool = False


class PrepareResult(Struct, frozen=True, kw_only=True):
    """Request a link for one blob with large results of a lease.

    Attributes:
        seq: The `seq` of the publication whose results are in the blob; it is part of the blob's key.
        crc32: zlib.crc32 of the blob.
        parts_crc32, upload_id: See Upload.
    """

    package_id: Id
    lease_id: Id
    seq: Natural
    size: Natural
    crc32: Crc32
    parts_crc32: PartsCrc32 = []
    upload_id: UploadId | None = None


class PrepareResults(Message, frozen=True, kw_only=True):
    results: Annotated[list[PrepareResult], Meta(min_length=1, max_length=BULK_ITEMS)]


class PreparedResult(Struct, frozen=True, kw_only=True):
    """The links for the upload of a blob of results. The worker may use `parts`, if present, in place of `link`."""

    key: str
    link: Link
    parts: Parts | None = None


class PrepareResultsReply(Message, frozen=True, kw_only=True):
    results: list[PreparedResult]


class Publication(LeaseRef, frozen=True, kw_only=True):
    """Results of one lease. All times are in microseconds.

    Attributes:
        seq: The number of this publication, from 0, among the publications and give-backs of this lease. (lease, seq)
            is the idempotency key.
        results: Results of any tasks of the lease.
        closes: Whether this is the last message about the lease, so that the master may delete the queue message.
        wait_us: The `wait_us` of the lease.
        retrieve_us: The time of the requests and downloads that brought this lease, without the time for which the
            master held the requests. Only one publication of the lease reports this time.
        publish_us: The time that earlier publish requests for this package took, unless a publication has already
            reported it.
        refused: If present, the package fails with this reason. "python": the worker has no suitable Python. "seal":
            the code or data does not match the client's seal. "payload": the code or data cannot be downloaded. A
            master of release 0.3.0 or earlier refuses the reason "payload"; then the lease expires.
        message: The reason in words for users.
    """

    seq: Natural
    results: Annotated[list[TaskResult], Meta(max_length=PUBLICATION_TASKS)]
    closes: bool = False
    wait_us: Micros = 0
    retrieve_us: Micros = 0
    publish_us: Micros = 0
    refused: Literal["python", "seal", "payload"] | None = None
    message: str | None = None


class PublishResults(Message, frozen=True, kw_only=True):
    """Publish results.

    Attributes:
        executors: The number of the worker's executors.
        seals: Whether the worker has sealed the results of sealed packages. If not, because the worker is of an earlier
            release, the master seals the results.
        others: The worker's leases that have no publication in this request. If the field is given, the request is also
            a beat: the master extends these leases and those of the publications, and the reply has a LeaseView of
            each. None: the request extends no lease.
    """

    worker_id: Id
    executors: Annotated[int, Meta(ge=1, le=10_000)]
    publications: Annotated[list[Publication], Meta(min_length=1, max_length=BULK_ITEMS)]
    seals: bool = False
    others: Annotated[list[LeaseRef], Meta(max_length=BULK_ITEMS)] | None = None


class LeaseView(Struct, frozen=True, kw_only=True):
    """The tasks of a lease that the master still wants.

    Attributes:
        ranges: The tasks that are wanted, if the state is "wanted".
        lease_s, budget_us: See Lease. Both times are counted from this reply.
    """

    lease_id: str
    state: LeaseState
    ranges: list[Range] = []
    lease_s: Seconds = 0.0
    budget_us: Micros = 0


class PublishResultsReply(Message, frozen=True, kw_only=True):
    """The reply after all publications are stored durably.

    Attributes:
        hungry: Whether another worker is idle and the queue has no chunks. If so, a worker with many tasks that it has
            not started gives some back.
        waiting: Whether a package's first chunk is waiting, at a master that holds no requests. If so, the worker
            retrieves that chunk, with `besides`, as soon as one of its executors is free.
    """

    leases: list[LeaseView]
    hungry: bool = False
    waiting: bool = False


class ExtendLeases(Message, frozen=True, kw_only=True):
    """Extend leases. This request is a beat: it also shows that the worker is alive.

    Attributes:
        unwritable: The reason why the worker cannot write results to the folder that it shares with its pool's own
            master; None if it can write.
        credentials: Whether credentials of some of the leases expire soon, so that the worker needs new ones.
    """

    worker_id: Id
    leases: Annotated[list[LeaseRef], Meta(min_length=1, max_length=BULK_ITEMS)]
    unwritable: Unwritable | None = None
    credentials: bool = False


class ExtendLeasesReply(Message, frozen=True, kw_only=True):
    """The tasks of the leases that the master still wants. For `hungry` and `waiting` see PublishResultsReply.

    If the request has `credentials`, the reply has the credentials for the packages of these leases.
    """

    leases: list[LeaseView]
    hungry: bool = False
    waiting: bool = False
    credentials: list[TaskCredentials] = []


class Return(LeaseRef, frozen=True, kw_only=True):
    """Tasks that the worker gives back without results; `seq` and `closes` mean the same as in Publication.

    Attributes:
        attempt: The `attempt` of the lease, from which the master learns how many workers were lost with these tasks.
        unfit: The thing that the package needs and the worker lacks. The master records it for the package's client.
        used_us: The execution time to charge although there is no result. The tasks ran, and then failed because the
            worker lacks something.
    """

    seq: Natural
    ranges: Annotated[list[Range], Meta(min_length=1, max_length=1000)]
    closes: bool = False
    attempt: Natural = 1
    unfit: Unfit | None = None
    used_us: Micros = 0


class GiveBack(Message, frozen=True, kw_only=True):
    """Return tasks that the worker will not run.

    Attributes:
        leaving: Whether the worker has no tasks left and ends, so that the master takes it off the list of live
            workers. `returns` may then be empty. A master of an earlier release refuses an empty list; the worker ends
            nevertheless.
    """

    worker_id: Id
    returns: Annotated[list[Return], Meta(max_length=BULK_ITEMS)]
    leaving: bool = False


class GiveBackReply(Message, frozen=True, kw_only=True):
    pass
