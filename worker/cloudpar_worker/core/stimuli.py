"""The input of the agent's state machine. Times are in microseconds on the agent's monotonic clock."""

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
        absent_at_us: A time on the agent's clock, in microseconds, at which these results had not arrived yet.
    """

    executor_id: int
    results: list[ExecutorResult]
    absent_at_us: int


class TaskWaits(Stimulus, frozen=True):
    """The running task of an executor starts to wait for tasks of its own, or continues after such a wait."""

    executor_id: int
    waits: bool


class GarbageReceived(Stimulus, frozen=True):
    """An executor has sent bytes that its own code cannot have sent; `what` describes them."""

    executor_id: int
    what: str


class ExecutorGone(Stimulus, frozen=True):
    """An executor has ended, and the agent has read all its results; or the executor could not be forked.

    Attributes:
        exit_code: The executor's exit code or, if a signal ended the executor, the negative number of the signal (as in
            `subprocess`). None if it is unknown, because the executor was not forked or its zygote has ended.
        stdout, stderr: The start of the running task's standard output, and of its standard error; each is None if it
            is empty. A crash report in `stderr` lacks the frames of the executor's own code.
    """

    executor_id: int
    exit_code: int | None
    stdout: str | None = None
    stderr: str | None = None


class PythonFailed(Stimulus, frozen=True):
    """The interpreter for this version of Python does not start, so there are no executors of this version."""

    python: str


class RecallChecked(Stimulus, frozen=True):
    """Some time after a recall, the agent has read the number of tasks that an executor has started or skipped."""

    executor_id: int
    started: int


class Measured(Stimulus, frozen=True):
    """The memory and the output of an executor.

    Attributes:
        rss_bytes: The memory of the executor and of all processes that it started, or an upper bound of it. If the
            upper bound is large, the agent requests an exact measurement. Until the agent has this measurement, and in
            the pause after it, `rss_bytes` is the memory of the executor without the processes that it started.
        output_bytes: The size of the larger of the executor's two output files. Here the size of a file is its length
            or the memory that it takes, whichever is more.
        processes: The number of running processes that the executor started.
        cpu_us: The CPU time that the executor's own process has used since its start, in microseconds.
        descriptors: The number of file descriptors for which the processes that the executor started have room in their
            tables.
    """

    executor_id: int
    rss_bytes: int
    output_bytes: int
    processes: int = 0
    cpu_us: int = 0
    descriptors: int = 0


class Retrieved(Stimulus, frozen=True):
    """The answer to a retrieval.

    Attributes:
        request_us: An estimate of the request's duration without the time for which the master held it.
        broken: The leases with a payload that does not match its seal: for each lease id, a text that names this
            payload. These leases are refused.
        besides: Whether the request was a fetch: it named packages in its own field `besides`.
        holds: Whether the master holds requests.
        waiting: Whether more chunks of packages that the request did not name in `besides` wait at the master.
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
    """The code of a lease has arrived, and so has the data of its tasks that are in the range `tasks`.

    Attributes:
        item_bytes: The mean size of one task's data; 0 if the data was not in a blob.
    """

    lease_id: str
    tasks: Range
    item_bytes: int
    download_us: int


class DownloadFailed(Stimulus, frozen=True):
    """The payload of a lease cannot be downloaded, is damaged, or does not match its seals.

    Attributes:
        stale: Whether the lease's links may have expired, so that fresh links may help.
        broken: A text about the payload of a sealed package that failed verification; None if the download failed for
            another reason.
        why: A text that says why the download failed; "" if there is none.
    """

    lease_id: str
    stale: bool
    broken: str | None = None
    why: str = ""


class TooLarge(Stimulus, frozen=True):
    """For each of these tasks, the code and the task's data are together larger than an executor's memory limit."""

    lease_id: str
    tasks: Range
    payload_bytes: int


class Published(Stimulus, frozen=True):
    """The publications of these leases are durable, or the master has refused them for good.

    If the master has refused all publications of a lease, `views` has no entry for the lease.

    Attributes:
        hungry: Whether another worker is idle, and the master has no chunk for it.
        request_us: The duration of all requests and uploads together.
        waiting: Whether a package's first chunk waits at the master. Only a master that holds no requests sets it.
    """

    lease_ids: list[str]
    views: list[LeaseView]
    hungry: bool
    request_us: int
    waiting: bool = False


class Extended(Stimulus, frozen=True):
    """The answer to a beat. `views` lacks leases that the master could not extend; other fields are as in Published."""

    views: list[LeaseView]
    hungry: bool = False
    waiting: bool = False


class GivenBack(Stimulus, frozen=True):
    """The master has recorded the give-backs of these leases, or has refused them for good."""

    lease_ids: list[str]


class RequestFailed(Stimulus, frozen=True):
    """A request to the master or to the blob store has failed, and the agent will repeat the request.

    Attributes:
        stalled_us: The time since the last request that succeeded, or since the agent's start. Requests that the agent
            never repeats, such as beats and peeks, do not count.
    """

    stalled_us: int


class DrainRequested(Stimulus, frozen=True):
    """The agent has received the signal to drain."""


class TimePassed(Stimulus, frozen=True):
    """No other stimulus has occurred; the deadline of the state machine may have come."""
