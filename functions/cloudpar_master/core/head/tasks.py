"""Where each task of a package is: in a result, in a chunk, cancelled, or not cut yet."""

from msgspec import Struct, field
from msgspec.structs import replace

from cloudpar_protocol.payloads import Range

ENTRIES = 560
"""How many open, cancelled and stopping ranges a head has in all. Beyond that, the fold declines events that would
split these ranges further, which keeps the head below HEAD_BYTES."""

FAILED_RANGES = 100
"""How many ranges of failed tasks a head names. It only counts further failures."""

CANCELLED_RANGES = 200
"""How many cancelled ranges a client may make. Beyond that it can only cancel the whole package."""


class OpenRange(Struct, frozen=True, array_like=True):
    """Tasks [start, end) that were cut into a chunk at head version `generation` and have no result yet.

    Attributes:
        sent: The chunk is known to be in the queue, or at a worker.
        losses: How many workers were lost with these tasks before a worker gave them back.
    """

    start: int
    end: int
    generation: int
    sent: bool = False
    losses: int = 0


class Tasks(Struct, kw_only=True):
    """The tasks of one package.

    Tasks below `cursor` have been cut into chunks. Of these, the tasks in `open` have no result yet; all others have a
    result or are cancelled. Finished tasks therefore need no record, and the size of a head does not depend on the
    number of tasks.

    Attributes:
        count: How many tasks the package has.
        chunksize: Tasks of each chunk, as the client wants it; None: the master chooses.
        cursor: The first task that was never cut into a chunk.
        open: Tasks in chunks, sorted and disjoint. After a give-back or a late result, a chunk may have several ranges.
        cancelled: Tasks that were cancelled while the package went on. They have no result.
        stopping: Tasks that the package does not want any more and that a worker may still run. Their time is charged
            once, if the worker reports it before `settle_at` (Life).
        draining: The client has cancelled all tasks that no worker has. A chunk that is still in the queue is cancelled
            when the queue delivers it.
        done: Tasks with a result, or cancelled.
        errors: How many results are not a success.
        failed: The tasks with such results, in at most FAILED_RANGES ranges.
    """

    count: int = field(name="tasks")
    chunksize: int | None = None
    cursor: int = 0
    open: list[OpenRange] = []
    cancelled: list[Range] = []
    stopping: list[Range] = []
    draining: bool = False
    done: int = 0
    errors: int = 0
    failed: list[Range] = []

    def draft(self) -> "Tasks":
        """A copy that a fold may change. It shares no list with the original."""
        return replace(
            self,
            open=list(self.open),
            cancelled=list(self.cancelled),
            stopping=list(self.stopping),
            failed=list(self.failed),
        )

    @property
    def unsent(self) -> list[OpenRange]:
        """The outbox: chunks that are not known to be in the queue."""
        return [each for each in self.open if not each.sent]

    @property
    def free_entries(self) -> int:
        """How many more ranges the head has room for (ENTRIES). Halvings may make this number negative."""
        return ENTRIES - len(self.open) - len(self.cancelled) - len(self.stopping)
