"""Which tasks of a package are done, are in chunks, are cancelled, or are not cut into chunks yet."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import attrgetter

from msgspec import Struct, field
from msgspec.structs import replace

from cloudpar_protocol.payloads import Range

ENTRIES = 19_000
"""How many open, cancelled and stopping ranges a head has in all, at most. This bound keeps the head below HEAD_BYTES.
If results or a give-back would need more ranges, the fold queues whole ranges again. The fold declines a cancellation
that would need more ranges. Only HALVINGS and SMALL_WINDOW of fold/open_ranges.py permit a few more ranges. Most heads
have far fewer, namely about two open ranges for each executor, because an executor may run a task that outlasts all
others of its chunk."""

FAILED_RANGES = 100
"""How many ranges of failed tasks a head names at most. Further failed tasks are only counted."""

CANCELLED_RANGES = 200
"""A request to cancel some tasks is refused if its ranges, together with the ranges that are already cancelled, are
more than this number."""


class OpenRange(Struct, frozen=True, array_like=True):
    """Tasks [start, end) that were cut into a chunk at head version `generation` and have no result yet.

    Attributes:
        sent: Whether the chunk is known to be in the queue, or at a worker.
        losses: The number of workers that were lost with these tasks before the tasks were cut into this chunk. A
            give-back reports the number to the fold. Halving a range resets the number to 0.
        express: Whether the chunk goes by the express queue. This is decided once, when the chunk is cut: if a later
            process decided otherwise and sent the chunk again, both queues would have it.
    """

    start: int
    end: int
    generation: int
    sent: bool = False
    losses: int = 0
    express: bool = False


class Tasks(Struct, kw_only=True):
    """The tasks of one package.

    Each task below `cursor` was cut into a chunk, or was cancelled before it was cut. While the package runs, the tasks
    in `open` have no result yet; all other tasks below `cursor` have a result or are cancelled. Finished tasks
    therefore need no record, and the size of a head does not depend on the number of tasks.

    Attributes:
        count: The number of the package's tasks.
        chunksize: The number of tasks in each chunk, if the client has set it; None: the master chooses.
        cursor: The number of the first uncut task. All tasks after it are uncut, too.
        open: The ranges of tasks that are in chunks and have no result yet. They are sorted and do not overlap. The
            tasks of one chunk may be in several ranges, for example after results from its middle.
        cancelled: The ranges of tasks that were cancelled while the package ran, and of those that no worker had when
            the package was cancelled. These tasks have no result.
        stopping: The ranges of tasks that the package does not want any more and that a worker may still run. The time
            of such a task is charged once, if the worker reports it before `Life.settle_at`.
        draining: Whether a client or an operator has requested to cancel all tasks that no worker has. A chunk that no
            worker has received yet is cancelled when the queue delivers it.
        done: The number of tasks that have a result or are cancelled.
        errors: The number of results whose outcome is not "ok".
        failed: The tasks whose outcome is not "ok", in at most FAILED_RANGES ranges.
        heard_at: The time of the last fold that consumed a report from a worker or the queue on a chunk of the package,
            or that found no open chunk.
        resend_at: The time at which all open chunks are sent again, unless a worker or the queue reports on one of them
            earlier.
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
    heard_at: float = 0.0
    resend_at: float = 0.0

    def draft(self) -> "Tasks":
        """Return a copy that a fold may change. It shares no list with the original."""
        return replace(
            self,
            open=list(self.open),
            cancelled=list(self.cancelled),
            stopping=list(self.stopping),
            failed=list(self.failed),
        )

    def among(self, numbers: Sequence[Range]) -> range:
        """Return the positions in `open` of the ranges between the first and the last task of a sorted set.

        This is a binary search: a large fleet has thousands of open ranges, and every publication has to find its own.
        """
        if not numbers:
            return range(0)
        first = bisect_right(self.open, numbers[0][0], key=attrgetter("end"))
        return range(first, bisect_left(self.open, numbers[-1][1], first, key=attrgetter("start")))

    @property
    def unsent(self) -> list[OpenRange]:
        """The outbox: chunks that are not known to be in the queue."""
        return [each for each in self.open if not each.sent]

    @property
    def free_entries(self) -> int:
        """The number of further ranges for which the head has room. The exceptions to ENTRIES may make it negative."""
        return ENTRIES - len(self.open) - len(self.cancelled) - len(self.stopping)
