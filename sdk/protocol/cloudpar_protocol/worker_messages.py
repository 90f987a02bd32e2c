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
left to do. "ended": the package was cancelled, failed or deleted, so the worker stops its running tasks, publishes them
with their time, and drops the other tasks."""


class RetrieveTasks(Message, frozen=True, kw_only=True):
    """Retrieve up to `chunks` chunks, but never more than RETRIEVED_CHUNKS.

    Attributes:
        attempt_id: A repeated request with the same id returns the same chunks, if it comes within 5 minutes and before
            the leases end.
        worker_id: The id of this agent.
        executors: How many executors the agent has, busy or not.
        hold_s: The longest time to hold the request, in seconds; 0: the master answers at once.
        host: The name of the agent's machine, for users.
        pythons: The minor versions of Python that the executors can run, "3.11". Empty: the worker is of an earlier
            release, which does not report versions, and gets chunks for every Python.
        set_aside: The packages that the worker cannot run, because it lacks something that they need.
        besides: Packages of which the worker already has waiting tasks, so that it wants chunks of other packages. If
            the queue cannot choose among messages, the worker gets first chunks of any packages instead.
        peek: Lease nothing; only answer whether a chunk of a package that is not in `besides` is waiting.
        again: The worker has sent this request before, and got no answer.
        own: The tasks of this worker have the rights of the worker's user, so the worker runs only tasks of the
            master's default account.
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
    own: bool = False


class LeaseRef(Struct, frozen=True, kw_only=True):
    """Identifies a lease and its chunk.

    Attributes:
        package_id: The package whose tasks are leased.
        lease_id: New for each retrieval of the chunk; part of the keys of the lease's result blobs.
        receipt: The queue's handle, with which the master extends or deletes the queue message.
        start, end, generation: The chunk: tasks [start, end) of the package, cut at this version of its head.
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
    """The right to run a chunk's tasks for `lease_s` seconds, counted from the reply.

    Attributes:
        ranges: The chunk's tasks that are left to do, in order; usually all.
        attempt: How many times the chunk's tasks were leased, this lease included. Leases whose tasks were given back
            do not count.
        account: An opaque id; an executor never runs tasks of two accounts.
        code, code_link: The task code; the link is for code that is not inline.
        data: The task data: a range or a blob for the whole package, or inline data with only the items of `ranges`, in
            order.
        data_link: The link to a blob of data; it allows requests for byte ranges.
        tasks: The number of tasks of the package. The worker needs it to find the table of offsets in a blob of data.
        codec: How task data and results are serialized; with "msgpack" the code is a reference, and `python` is
            ignored.
        mean_us: The mean duration of the package's last tasks; 0: unknown.
        wait_us: How long the chunk waited in the queue; the worker repeats it in its publications.
        task_timeout_s: The time limit for one task.
        threads_per_task, depth: As in StartTasks.
        retries, retry_on: As in StartTasks; the time of all tries is the task's time.
        budget_us: The compute time that the package may still use; the worker stops a task that runs longer.
        collect_us: While all executors have work, the worker may collect results for this long before it publishes
            them, since a request may cost money.
        seal, seal_key: In a sealed package: the seal of its code, and the account's key. Executors never see the key.
        elsewhere: Whether another worker may be able to run the package. If so, a worker that lacks something for the
            package gives the chunk back with the reason (`unfit`). If not, as with a master of an earlier release, the
            tasks end with the errors that this causes.
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
    retries: Retries = 0
    retry_on: ExceptionNames = []
    seal: Seal | None = None
    seal_key: SealKey | None = None
    threads_per_task: Threads | None = None
    elsewhere: bool = False
    depth: Depth = 0


class RetrieveTasksReply(Message, frozen=True, kw_only=True):
    """The leases that the worker gets.

    Attributes:
        retry_after_s: If there is no lease, the worker sends its next request after this many seconds.
        holds: Whether this master holds requests, so that a busy worker may keep a `peek` open.
        waiting: If the request has `peek` or `besides`: whether a chunk of a package that is not in `besides` is
            waiting. If the queue cannot choose among messages: whether a first chunk is waiting.
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
        parts_crc32, upload_id: As in Upload.
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
    """Where to upload a blob of results. If there are `parts`, the worker may use them in place of `link`."""

    key: str
    link: Link
    parts: Parts | None = None


class PrepareResultsReply(Message, frozen=True, kw_only=True):
    results: list[PreparedResult]


class Publication(LeaseRef, frozen=True, kw_only=True):
    """Results of one lease.

    Attributes:
        seq: Counts the publications and give-backs of this lease, from 0; (lease, seq) is the idempotency key.
        results: Results of any tasks of the lease.
        closes: Whether this is the last message about the lease, so that the master may delete the queue message.
        wait_us: The same as in the lease.
        retrieve_us: The time of the requests and downloads that brought this lease, without the time for which the
            master held the requests. Only one publication of the lease reports it.
        publish_us: The time of the worker's publish requests for this package that no publication has reported yet.
        refused: If present, the package fails with this reason. "python": the worker has no suitable Python. "seal":
            the code or data does not match the client's seal.
        message: The reason in words for users.
    """

    seq: Natural
    results: Annotated[list[TaskResult], Meta(max_length=PUBLICATION_TASKS)]
    closes: bool = False
    wait_us: Micros = 0
    retrieve_us: Micros = 0
    publish_us: Micros = 0
    refused: Literal["python", "seal"] | None = None
    message: str | None = None


class PublishResults(Message, frozen=True, kw_only=True):
    """Publish results.

    Attributes:
        executors: How many executors the worker has.
        seals: Whether the worker has sealed the results of sealed packages. If not, because the worker is of an earlier
            release, the master seals the results.
    """

    worker_id: Id
    executors: Annotated[int, Meta(ge=1, le=10_000)]
    publications: Annotated[list[Publication], Meta(min_length=1, max_length=BULK_ITEMS)]
    seals: bool = False


class LeaseView(Struct, frozen=True, kw_only=True):
    """Which tasks of a lease the master still wants.

    Attributes:
        ranges: The tasks that are wanted, if the state is "wanted".
        lease_s, budget_us: As in Lease, counted from this reply.
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
        unwritable: Why the worker cannot write results to the folder that it shares with its pool's own master; None if
            it can.
    """

    worker_id: Id
    leases: Annotated[list[LeaseRef], Meta(min_length=1, max_length=BULK_ITEMS)]
    unwritable: Unwritable | None = None


class ExtendLeasesReply(Message, frozen=True, kw_only=True):
    """Which tasks of the leases the master still wants; for `hungry` and `waiting` see PublishResultsReply."""

    leases: list[LeaseView]
    hungry: bool = False
    waiting: bool = False


class Return(LeaseRef, frozen=True, kw_only=True):
    """Tasks that the worker gives back without results; `seq` and `closes` mean the same as in Publication.

    Attributes:
        attempt: As in the lease, so that the master still knows how many workers were lost with these tasks.
        unfit: What the worker lacks for the package. The master notes this for the package's client.
        used_us: Execution time to charge although there is no result. Such tasks ran before they failed because of what
            the worker lacks.
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
