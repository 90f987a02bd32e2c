"""The output of the agent's state machine."""

from msgspec import Struct

from cloudpar_protocol.payloads import Range
from cloudpar_protocol.worker_messages import Lease, LeaseRef, Publication, Return

from .lease_record import LeaseRecord


class Instruction(Struct, frozen=True):
    """Something for the agent's process to do."""


class Spawn(Instruction, frozen=True):
    """Fork an executor for a version of Python, such as "3.12"."""

    executor_id: int
    python: str


class Kill(Instruction, frozen=True):
    """Kill an executor and its whole process group."""

    executor_id: int


class Feed(Instruction, frozen=True):
    """Send a run of tasks to an executor."""

    executor_id: int
    lease: Lease
    tasks: Range


class Recall(Instruction, frozen=True):
    """Tell an executor to skip its tasks [first, end), which are numbered from 0 in the order in which it got them."""

    executor_id: int
    first: int
    end: int


class CheckRecall(Instruction, frozen=True):
    """Read all results that an executor has sent, and then read how many tasks it has started or skipped."""

    executor_id: int


class Measure(Instruction, frozen=True):
    """Measure the memory and the output of these executors.

    The kernel shares the processors among executors by their weights. Those in `light` get the lowest weight, and the
    others the usual one.
    """

    executor_ids: list[int]
    light: list[int]


class Retrieve(Instruction, frozen=True):
    """Request at most `chunks` chunks for these versions of Python, but no chunks of the packages in `set_aside`.

    The master may hold the request for `hold_s` seconds. `besides`, `peek` and `idle` are as in RetrieveTasks.
    """

    chunks: int
    hold_s: float
    host: str
    pythons: list[str]
    set_aside: list[str]
    besides: list[str]
    peek: bool
    idle: bool


class Download(Instruction, frozen=True):
    """Download a lease's code and, in order, the data of as many of these tasks as one download can bring."""

    lease: Lease
    tasks: Range


class Discard(Instruction, frozen=True):
    """Drop the data of these tasks: no executor needs it any more."""

    lease_id: str
    tasks: Range


class Forget(Instruction, frozen=True):
    """Drop the downloaded data of a lease that has ended here."""

    lease_id: str


class Publish(Instruction, frozen=True):
    """Upload the large results of these publications, and send the publications in this order.

    If `others` is not None, also renew leases: those of the publications, and those in `others`.

    `uploads_for` is the account, if these publications have large results; otherwise None.
    """

    publications: list[Publication]
    others: list[LeaseRef] | None = None
    uploads_for: str | None = None


class Extend(Instruction, frozen=True):
    """Renew these leases (a beat)."""

    leases: list[LeaseRef]


class GiveBackTasks(Instruction, frozen=True):
    """Give back to the master tasks that no executor has."""

    returns: list[Return]


class Warn(Instruction, frozen=True):
    """Write a line to the worker's log."""

    text: str


class Exit(Instruction, frozen=True):
    """End the agent.

    `left` contains the leases that are not closed because the agent could not reach the master. After a complete drain
    `left` is empty.
    """

    left: list[LeaseRecord]
