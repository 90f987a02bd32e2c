"""What can happen to a package. Each event is idempotent: folding it twice changes nothing."""

from msgspec import Struct

from cloudpar_protocol.payloads import Range, TaskResult, Unfit


class Published(Struct, frozen=True, kw_only=True, tag="published", omit_defaults=True):
    """A worker published results of a chunk. `closed`: all tasks of the chunk, if the worker has closed its lease."""

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
    """A worker will not run these tasks of a chunk. `losses` workers were lost with them before.

    `unfit`: the worker lacks something that the tasks need. `used_us` is charged, although there is no result. A master
    folds this event, too, if it does not hand out a chunk because no compute time is left.
    """

    generation: int
    ranges: list[Range]
    losses: int = 0
    unfit: Unfit | None = None
    used_us: int = 0


class Stranded(Struct, frozen=True, kw_only=True, tag="stranded", omit_defaults=True):
    """No live worker can run the package.

    Attributes:
        message: If no worker has the package's Python: the message, for people, with which the package fails unless
            such a worker comes. None: workers have its Python, and each of them lacks something else.
    """

    message: str | None = None


class Placed(Struct, frozen=True, tag="placed"):
    """A live worker can run the package. Before, it was stranded, or ran on workers that lack something."""


class Lost(Struct, frozen=True, kw_only=True, tag="lost"):
    """A chunk was given up, because its workers were lost `receives` times."""

    start: int
    end: int
    generation: int
    receives: int


class CancelAsked(Struct, frozen=True, kw_only=True, tag="cancel_asked", omit_defaults=True):
    """Cancel the package, or some of its tasks, or (only_queued) the tasks that no worker has yet."""

    ranges: list[Range] | None = None
    only_queued: bool = False
    reason: str = "cancelled"
    message: str = "cancelled by its client"


class Cleared(Struct, frozen=True, kw_only=True, tag="cleared"):
    """The queue delivered a chunk of a draining or ended package. It was not handed out: no worker has it."""

    generation: int
    ranges: list[Range]


class Acknowledged(Struct, frozen=True, kw_only=True, tag="acknowledged"):
    """The client needs nothing of this package any more."""


class ExecutorsIdle(Struct, frozen=True, kw_only=True, tag="executors_idle"):
    """Executors found the queue empty while this package had tasks in no chunk."""

    executors: int


class QuotaGranted(Struct, frozen=True, kw_only=True, tag="quota_granted"):
    """The answer to a request for a slice. `exhausted`: nothing is left, and no other package can give any back."""

    slice: int
    granted_us: int
    exhausted: bool


class Sent(Struct, frozen=True, kw_only=True, tag="sent"):
    """These chunks, as (start, end, generation), are in the queue."""

    chunks: list[tuple[int, int, int]]


class Settled(Struct, frozen=True, kw_only=True, tag="settled"):
    """The account has been charged and has the rest of the slices back."""

    charged_us: int


class Deleted(Struct, frozen=True, kw_only=True, tag="deleted"):
    """The package's storage is free."""


class Broken(Struct, frozen=True, kw_only=True, tag="broken"):
    """An event could not be read or folded, so the package fails."""

    message: str


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
