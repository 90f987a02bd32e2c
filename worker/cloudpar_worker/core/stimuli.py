"""What happens to a worker: the input of its state machine. Times are microseconds of the agent's monotonic clock."""

from msgspec import Struct

from cloudpar_protocol.payloads import Range
from cloudpar_protocol.worker_messages import Lease, LeaseView

from .executor_result import ExecutorResult


class ExecutorReady(Struct, frozen=True):
    """An executor can be fed."""

    executor_id: int


class Results(Struct, frozen=True):
    """Results came from an executor.

    Attributes:
        absent_at_us: They were not there yet at this time.
    """

    executor_id: int
    results: list[ExecutorResult]
    absent_at_us: int


class TaskWaits(Struct, frozen=True):
    """The task that runs in an executor begins to wait for tasks of its own, or goes on."""

    executor_id: int
    waits: bool


class GarbageCame(Struct, frozen=True):
    """Something came from an executor that is no result."""

    executor_id: int
    what: str


class ExecutorGone(Struct, frozen=True):
    """An executor's process has ended, and all that it had written was read.

    Attributes:
        exit_code: As subprocess has it: negative is a signal; None when nobody knows.
        stdout, stderr: What the task that it was running had written.
    """

    executor_id: int
    exit_code: int | None
    stdout: str | None = None
    stderr: str | None = None


class PythonFailed(Struct, frozen=True):
    """Executors of this version of Python are not to be had here: its interpreter does not start."""

    python: str


class RecallLooked(Struct, frozen=True):
    """What an executor has begun, seen well after tasks were recalled from it."""

    executor_id: int
    started: int


class Measured(Struct, frozen=True):
    """A look at an executor's process, with those that it started."""

    executor_id: int
    rss_bytes: int
    output_bytes: int


class Retrieved(Struct, frozen=True):
    """The answer to the retrieval.

    Attributes:
        request_us: What it cost without the time it was held.
        broken: By lease, why none of it is to be run: it is not what its client sealed.
        besides: It asked for chunks of other packages only.
        holds: The master holds requests.
        waiting: More of such chunks wait.
    """

    leases: list[Lease]
    retry_after_us: int = 0
    request_us: int = 0
    broken: dict[str, str] = {}
    besides: bool = False
    holds: bool = False
    waiting: bool = False


class Peeked(Struct, frozen=True):
    """Whether chunks of other packages wait at the master, which is to be asked again after some time."""

    waiting: bool
    retry_after_us: int = 0


class Downloaded(Struct, frozen=True):
    """The code and the data of the tasks [start, end) of a lease are here, `item_bytes` a task on average."""

    lease_id: str
    tasks: Range
    item_bytes: int
    download_us: int


class DownloadFailed(Struct, frozen=True):
    """The payload of a lease cannot be had.

    Attributes:
        stale: Only because its links are too old by now.
        broken: It is here, and not what its client sealed; why.
    """

    lease_id: str
    stale: bool
    broken: str | None = None


class Published(Struct, frozen=True):
    """These leases' publications are durable (or refused for good, without a view).

    Attributes:
        waiting: The first chunk of another package waits at the master.
    """

    lease_ids: list[str]
    views: list[LeaseView]
    hungry: bool
    request_us: int
    waiting: bool = False


class Extended(Struct, frozen=True):
    """The answer to a beat; empty when nothing came in time."""

    views: list[LeaseView]
    hungry: bool = False
    waiting: bool = False


class GivenBack(Struct, frozen=True):
    """The master has these leases' returns."""

    lease_ids: list[str]


class NothingSucceeds(Struct, frozen=True):
    """What the master or its store of payloads was asked has failed, and will be tried again.

    Attributes:
        stalled_us: So long nothing has succeeded; beats, which are not tried again, do not count.
    """

    stalled_us: int


class DrainAsked(Struct, frozen=True):
    """Finish what runs and end."""


class TimePassed(Struct, frozen=True):
    """A deadline has come."""


Stimulus = (
    ExecutorReady
    | Results
    | TaskWaits
    | GarbageCame
    | ExecutorGone
    | PythonFailed
    | RecallLooked
    | Measured
    | Retrieved
    | Peeked
    | Downloaded
    | DownloadFailed
    | Published
    | Extended
    | GivenBack
    | NothingSucceeds
    | DrainAsked
    | TimePassed
)
