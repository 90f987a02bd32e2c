"""What a worker's state machine wants done: its output."""

from msgspec import Struct

from cloudpar_protocol.payloads import Range
from cloudpar_protocol.worker_messages import Lease, LeaseRef, Publication, Return

from .lease_record import LeaseRecord


class Spawn(Struct, frozen=True):
    """Fork an executor of a version of Python, "3.12"."""

    executor_id: int
    python: str


class Kill(Struct, frozen=True):
    """Kill an executor with its process group."""

    executor_id: int


class Feed(Struct, frozen=True):
    """Send an executor a run of tasks."""

    executor_id: int
    lease: Lease
    tasks: Range


class Recall(Struct, frozen=True):
    """Have an executor pass over the tasks [first, end), counted from the first that it was fed."""

    executor_id: int
    first: int
    end: int


class ConfirmRecall(Struct, frozen=True):
    """Look how far it has come."""

    executor_id: int


class Measure(Struct, frozen=True):
    """Look at these executors' processes."""

    executor_ids: list[int]


class Retrieve(Struct, frozen=True):
    """Ask the master for chunks: of these versions of Python, and not of packages that this worker cannot run.

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
    """Get the code of a lease, and the data of the first of these tasks."""

    lease: Lease
    tasks: Range


class Discard(Struct, frozen=True):
    """The data of these tasks is not needed any more."""

    lease_id: str
    tasks: Range


class Forget(Struct, frozen=True):
    """Nothing of this lease is needed any more."""

    lease_id: str


class Publish(Struct, frozen=True):
    """Publish, in this order; large results still lie in `data`."""

    publications: list[Publication]


class Extend(Struct, frozen=True):
    """Beat."""

    leases: list[LeaseRef]


class GiveBackTasks(Struct, frozen=True):
    """Return untouched tasks."""

    returns: list[Return]


class Warn(Struct, frozen=True):
    """Tell the worker's operator something."""

    text: str


class Exit(Struct, frozen=True):
    """End the agent: all is done, or it gives up and leaves these leases, whose results the master has not all."""

    left: list[LeaseRecord]


ExecutorInstruction = Spawn | Kill | Feed | Recall | ConfirmRecall | Measure
MasterInstruction = Retrieve | Download | Discard | Forget | Publish | Extend | GiveBackTasks
Instruction = ExecutorInstruction | MasterInstruction | Warn | Exit
