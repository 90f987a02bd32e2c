"""The output of the agent's state machine."""

from msgspec import Struct

from cloudpar_protocol.payloads import Range
from cloudpar_protocol.worker_messages import Lease, LeaseRef, Publication, Return

from .lease_record import LeaseRecord


class Spawn(Struct, frozen=True):
    """Fork an executor of a version of Python, such as "3.12"."""

    executor_id: int
    python: str


class Kill(Struct, frozen=True):
    """Kill an executor with its process group."""

    executor_id: int


class Feed(Struct, frozen=True):
    """Send a run of tasks to an executor."""

    executor_id: int
    lease: Lease
    tasks: Range


class Recall(Struct, frozen=True):
    """Tell an executor to skip its tasks [first, end), counted from its first task ever."""

    executor_id: int
    first: int
    end: int


class CheckRecall(Struct, frozen=True):
    """Read how many tasks an executor has started."""

    executor_id: int


class Measure(Struct, frozen=True):
    """Measure the memory and the output of these executors."""

    executor_ids: list[int]


class Retrieve(Struct, frozen=True):
    """Ask the master for chunks: of these versions of Python, and of no package that this worker has set aside.

    The master may hold the request for `hold_s`. `besides` and `peek` are as in RetrieveTasks.
    """

    chunks: int
    hold_s: float
    host: str = ""
    pythons: list[str] = []
    set_aside: list[str] = []
    besides: list[str] = []
    peek: bool = False


class Download(Struct, frozen=True):
    """Download the code of a lease, and the data of the first of these tasks."""

    lease: Lease
    tasks: Range


class Discard(Struct, frozen=True):
    """Drop the data of these tasks: no executor needs it any more."""

    lease_id: str
    tasks: Range


class Forget(Struct, frozen=True):
    """Drop everything that belongs to a lease."""

    lease_id: str


class Publish(Struct, frozen=True):
    """Publish in this order. Large results are still inside, in `data`."""

    publications: list[Publication]


class Extend(Struct, frozen=True):
    """Renew these leases (a beat)."""

    leases: list[LeaseRef]


class GiveBackTasks(Struct, frozen=True):
    """Give untouched tasks back to the master."""

    returns: list[Return]


class Warn(Struct, frozen=True):
    """Write a line to the worker's log."""

    text: str


class Exit(Struct, frozen=True):
    """End the agent.

    `left` holds the leases whose results the master does not have completely; empty after a full drain.
    """

    left: list[LeaseRecord]


ExecutorInstruction = Spawn | Kill | Feed | Recall | CheckRecall | Measure
MasterInstruction = Retrieve | Download | Discard | Forget | Publish | Extend | GiveBackTasks
Instruction = ExecutorInstruction | MasterInstruction | Warn | Exit
