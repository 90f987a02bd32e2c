"""The events of packages. An event may be folded more than once: no task is then committed or charged twice."""

from msgspec import Struct

from cloudpar_protocol.payloads import Range, TaskResult, Unfit


class Published(Struct, frozen=True, kw_only=True, tag="published", omit_defaults=True):
    """A worker published results of a chunk, or refused to run the chunk's package.

    Attributes:
        executors: The number of the worker's executors.
        wait_us: The time for which the chunk waited in the queue.
        retrieve_us, publish_us: The times of the worker's requests; see Publication.
        refused, message: The reason for which the worker refuses the package, as a word for programs and as a text for
            people. None: the worker does not refuse the package.
        closed: All tasks of the chunk, if the worker has closed the chunk's lease: it sends nothing more about the
            lease. Otherwise None.
    """

    worker_id: str
    executors: int
    generation: int
    results: list[TaskResult]
    wait_us: int = 0
    retrieve_us: int = 0
    publish_us: int = 0
    refused: str | None = None
    message: str | None = None
    closed: Range | None = None


class GaveBack(Struct, frozen=True, kw_only=True, tag="gave_back", omit_defaults=True):
    """A worker will not run these tasks of a chunk.

    A master also makes this event itself, for a chunk that it does not hand out because no compute time is left.

    Attributes:
        losses: The number of workers that were lost while they had these tasks, as the master counted them for this
            lease.
        unfit: The worker's host name, and the thing that the tasks need and the worker lacks. None: the worker lacks
            nothing, and gives the tasks back for a different reason.
        used_us: Execution time to charge, although the tasks have no result.
        closed: See Published.
        number: Distinguishes this give-back from others. All copies of it have the same number. 0: the number is not
            known.
    """

    generation: int
    ranges: list[Range]
    losses: int = 0
    unfit: Unfit | None = None
    used_us: int = 0
    closed: Range | None = None
    number: int = 0


class Stranded(Struct, frozen=True, kw_only=True, tag="stranded", omit_defaults=True):
    """There are live workers, but none of them can run the package.

    Attributes:
        message: Set if no worker has the package's version of Python. The package fails with this message, unless a
            worker with this version comes within `grace_s`. None: some workers have this version, but each of them
            lacks something else.
    """

    message: str | None = None


class Placed(Struct, frozen=True, tag="placed"):
    """A live worker can run the package.

    Before this event the package was stranded, or ran on workers that lack something.
    """


class Lost(Struct, frozen=True, kw_only=True, tag="lost"):
    """The master gives up a chunk, because `receives` workers were lost with it, one after the other."""

    start: int
    end: int
    generation: int
    receives: int


class CancelAsked(Struct, frozen=True, kw_only=True, tag="cancel_asked", omit_defaults=True):
    """A client or an operator cancels the package, or only some of its tasks.

    Attributes:
        ranges: The tasks to cancel; None: the whole package.
        only_queued: Whether to cancel only the tasks that no worker has yet; `ranges` is then ignored.
        reason, message: The reason to cancel the whole package, as a word for programs and as a text for people.
    """

    ranges: list[Range] | None = None
    only_queued: bool = False
    reason: str = "cancelled"
    message: str = "cancelled by its client"


class Cleared(Struct, frozen=True, kw_only=True, tag="cleared"):
    """The master does not hand out these chunks, because their package has ended, or is draining (`Tasks.draining`).

    Either the queue has delivered one chunk, or the master has removed all waiting chunks of an ended package from the
    queue. No worker has had these chunks.

    Attributes:
        generation: The generation of the delivered chunk. It has no meaning for an ended package.
        ranges: The tasks of the chunks, as a sorted set of ranges. Tasks that the package does not wait for may be left
            out.
    """

    generation: int
    ranges: list[Range]


class Acknowledged(Struct, frozen=True, kw_only=True, tag="acknowledged"):
    """The client needs nothing of this package any more."""


class ExecutorsIdle(Struct, frozen=True, kw_only=True, tag="executors_idle"):
    """A worker with this many executors got no chunk while this package had uncut tasks.

    A master also makes this event, with one executor, to open a closed package.
    """

    executors: int


class QuotaGranted(Struct, frozen=True, kw_only=True, tag="quota_granted"):
    """The account's answer to a request for a slice.

    Attributes:
        slice: The number of the slice.
        granted_us: The part of the slice that was granted; it may be 0.
        exhausted: Whether nothing was granted and waiting is useless. Either no other package of the account can give
            compute time back, or this package may not get any.
        packages: The number of the account's packages that may be waiting for compute time; 0 if the account granted
            something.
    """

    slice: int
    granted_us: int
    exhausted: bool
    packages: int = 0


class Sent(Struct, frozen=True, kw_only=True, tag="sent"):
    """These chunks, as (start, end, generation), are in the queue."""

    chunks: list[tuple[int, int, int]]


class Settled(Struct, frozen=True, kw_only=True, tag="settled"):
    """The account has been charged, and has got the rest of the slices back."""

    charged_us: int


class Deleted(Struct, frozen=True, kw_only=True, tag="deleted"):
    """The package's data and results were removed."""


class Broken(Struct, frozen=True, kw_only=True, tag="broken"):
    """A record of the package cannot be read, or an event cannot be folded, so the package fails.

    Attributes:
        results: Whether committed results cannot be read. Then a completed package fails, too.
    """

    message: str
    results: bool = False


Event = (
    Published
    | GaveBack
    | Lost
    | CancelAsked
    | Cleared
    | Acknowledged
    | ExecutorsIdle
    | QuotaGranted
    | Sent
    | Settled
    | Deleted
    | Broken
    | Stranded
    | Placed
)
