"""The pace of a package: measured durations, its workers, and the number of chunks that it may have in the queue."""

from zlib import crc32

from msgspec import Struct
from msgspec.structs import replace

FLEET = 1_000
"""How many workers a head counts at most. A further worker counts only after one of these has stopped publishing."""


class Member(Struct, frozen=True, array_like=True):
    """The number of executors of a worker that published lately, and the time of its last publication."""

    executors: int
    seen_at: float


class Pace(Struct, kw_only=True):
    """What workers have reported about a package's tasks.

    Attributes:
        mean_us: The mean duration of the last tasks that ran to their end.
        measured: The number of tasks that were measured so far; 0: the duration is unknown.
        execute_us: The sum of the execution times of all committed results.
        retrieve_us, publish_us: The total time that the workers took to retrieve the tasks, and to publish the results.
        fleet: The workers that published lately, each under its number (number_of).
        most_executors: The largest number of executors that the package had at the same time, working or idle, as the
            workers' requests showed.
        window: The number of chunks that may be open. Each open range counts as a chunk. 0: the package is closed.
        window_since: The version of the head that last changed the window because of a measured wait. Only results of
            chunks that were cut since then may change the window again: an older chunk waited behind as many chunks as
            an earlier window allowed.
        pauses: Whether the package has run on many workers (`many_workers` of the policy). From then on, publications
            may wait for its next fold. The value stays True when workers leave. Otherwise a process that has read an
            older head could leave a publication in the inbox, and no process would plan a fold for this publication.
    """

    mean_us: float = 0.0
    measured: int = 0
    execute_us: int = 0
    retrieve_us: int = 0
    publish_us: int = 0
    fleet: dict[int, Member] = {}
    most_executors: int = 0
    window: int
    window_since: int = 0
    pauses: bool = False

    def draft(self) -> "Pace":
        """Return a copy that a fold may change. It shares no dictionary with the original."""
        return replace(self, fleet=dict(self.fleet))

    @property
    def executors(self) -> int:
        """The number of executors of all workers that published lately."""
        return sum(member.executors for member in self.fleet.values())

    @property
    def closed(self) -> bool:
        """Whether the package waits without chunks and reserve, since its account has enough other packages at work."""
        return self.window == 0


def number_of(worker_id: str) -> int:
    """Return the number of a worker in `Pace.fleet`. The number takes 5 bytes of the head; an id may take 800 bytes.

    Workers with the same number count as one.
    """
    return crc32(worker_id.encode())
