"""What can happen to a package. Each is idempotent: folding one twice changes nothing."""

from msgspec import Struct

from cloudpar_protocol.payloads import Range, TaskResult, Unfit


class Published(Struct, frozen=True, kw_only=True, tag="published", omit_defaults=True):
    """A worker has results of a chunk. `closed`: the tasks that it does not run any more."""

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
    """A worker will not run these tasks of a chunk. Before it, `losses` workers were lost with them.

    `unfit`: the worker cannot run them, since it lacks something. `used_us` is charged, although there is no result.
    """

    generation: int
    ranges: list[Range]
    losses: int = 0
    unfit: Unfit | None = None
    used_us: int = 0


class Stranded(Struct, frozen=True, kw_only=True, tag="stranded", omit_defaults=True):
    """No live worker can run the package.

    Attributes:
        message: For people, if no worker has the package's Python: the package fails with it unless such a worker
            comes. None: workers have its Python, and each of them lacks something else.
    """

    message: str | None = None


class Placed(Struct, frozen=True, tag="placed"):
    """A live worker can run the package, which was stranded, or ran at workers that lack something."""


class Lost(Struct, frozen=True, kw_only=True, tag="lost"):
    """The queue gave a chunk up after it had delivered it `receives` times."""

    start: int
    end: int
    generation: int
    receives: int


class CancelAsked(Struct, frozen=True, kw_only=True, tag="cancel_asked", omit_defaults=True):
    """Cancel the package, or some of its tasks, or (only_queued) what no worker has yet."""

    ranges: list[Range] | None = None
    only_queued: bool = False
    reason: str = "cancelled"
    message: str = "cancelled by its client"


class Cleared(Struct, frozen=True, kw_only=True, tag="cleared"):
    """A chunk of a draining or ended package surfaced in the queue and was not handed out: no worker has it."""

    generation: int
    ranges: list[Range]


class Acknowledged(Struct, frozen=True, kw_only=True, tag="acknowledged"):
    """The client needs nothing of this package any more."""


class ExecutorsIdle(Struct, frozen=True, kw_only=True, tag="executors_idle"):
    """Executors found the queue empty while this package had tasks in no chunk."""

    executors: int


class QuotaGranted(Struct, frozen=True, kw_only=True, tag="quota_granted"):
    """The answer for a slice. `exhausted`: nothing is left, and no other package holds any that could come back."""

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
    """An event could not be folded and was set aside."""

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
