"""The input of the agent's state machine. Times are microseconds of the agent's monotonic clock."""

from msgspec import Struct, field

from cloudpar_protocol.payloads import Range
from cloudpar_protocol.worker_messages import Lease, LeaseView

from .executor_result import ExecutorResult


class Stimulus(Struct, frozen=True):
    """Something that has happened."""


class ExecutorReady(Stimulus, frozen=True):
    """An executor is ready for tasks."""

    executor_id: int


class Results(Stimulus, frozen=True):
    """An executor has returned results.

    Attributes:
        absent_at_us: A time at which the agent looked and these results were not there yet.
    """

    executor_id: int
    results: list[ExecutorResult]
    absent_at_us: int


class TaskWaits(Stimulus, frozen=True):
    """The running task of an executor starts to wait for tasks of its own, or goes on."""

    executor_id: int
    waits: bool


class GarbageReceived(Stimulus, frozen=True):
    """An executor has sent bytes that are not a result."""

    executor_id: int
    what: str


class ExecutorGone(Stimulus, frozen=True):
    """The process of an executor has ended, and the agent has read all its output.

    Attributes:
        exit_code: As in `subprocess`: negative for a signal; None if unknown.
        stdout, stderr: What the running task had written.
    """

    executor_id: int
    exit_code: int | None
    stdout: str | None = None
    stderr: str | None = None


class PythonFailed(Stimulus, frozen=True):
    """The interpreter for this version of Python does not start, so there are no executors of this version."""

    python: str


class RecallChecked(Stimulus, frozen=True):
    """How many tasks an executor has started, read some time after a recall."""

    executor_id: int
    started: int


class Measured(Stimulus, frozen=True):
    """The memory of an executor with all processes that it started, and the size of its output."""

    executor_id: int
    rss_bytes: int
    output_bytes: int


class Retrieved(Stimulus, frozen=True):
    """The answer to a retrieval.

    Attributes:
        request_us: The duration of the request, without the time for which the master held it.
        broken: By lease, why its payload does not match its seals; such a lease is refused.
        besides: The request was for chunks of other packages only.
        holds: The master holds requests.
        waiting: More chunks of other packages wait at the master.
    """

    leases: list[Lease]
    retry_after_us: int = 0
    request_us: int = 0
    broken: dict[str, str] = field(default_factory=dict)
    besides: bool = False
    holds: bool = False
    waiting: bool = False


class Peeked(Stimulus, frozen=True):
    """The answer to a peek: whether chunks of other packages wait, and when to peek again."""

    waiting: bool
    retry_after_us: int = 0


class Downloaded(Stimulus, frozen=True):
    """The code of a lease and the data of its tasks [start, end) have arrived; an item has `item_bytes` on average."""

    lease_id: str
    tasks: Range
    item_bytes: int
    download_us: int


class DownloadFailed(Stimulus, frozen=True):
    """The payload of a lease cannot be downloaded.

    Attributes:
        stale: The lease's links had probably expired, and nothing else is wrong.
        broken: If the payload has arrived and does not match its seals: the reason.
    """

    lease_id: str
    stale: bool
    broken: str | None = None


class Published(Stimulus, frozen=True):
    """The publications of these leases are durable, or the master has refused them for good (then there is no view).

    Attributes:
        waiting: The first chunk of another package waits at the master.
    """

    lease_ids: list[str]
    views: list[LeaseView]
    hungry: bool
    request_us: int
    waiting: bool = False


class Extended(Stimulus, frozen=True):
    """The answer to a beat; empty if no answer came in time."""

    views: list[LeaseView]
    hungry: bool = False
    waiting: bool = False


class GivenBack(Stimulus, frozen=True):
    """The master has recorded the give-backs of these leases."""

    lease_ids: list[str]


class RequestFailed(Stimulus, frozen=True):
    """A request to the master or to the blob store has failed, and the agent will repeat it.

    Attributes:
        stalled_us: The time since the last request that succeeded. Beats do not count: the agent does not repeat them.
    """

    stalled_us: int


class DrainRequested(Stimulus, frozen=True):
    """The operator has asked the worker to drain: finish the running tasks, then end."""


class TimePassed(Stimulus, frozen=True):
    """The deadline of the state machine has come."""
