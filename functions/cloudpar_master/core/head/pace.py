"""How fast a package goes: measured durations, its workers, and how many chunks it may have in the queue."""

from zlib import crc32

from msgspec import Struct
from msgspec.structs import replace

FLEET = 64
"""How many workers a head names. Others are not counted while these publish."""


class Member(Struct, frozen=True, array_like=True):
    """A worker that published lately."""

    executors: int
    seen_at: float


class Pace(Struct, kw_only=True):
    """What workers have reported about a package's tasks.

    Attributes:
        mean_us: Mean duration of the last tasks.
        measured: How many tasks have gone into this mean; 0: the duration is unknown.
        execute_us: Execution times of all committed results.
        retrieve_us, publish_us: What retrieving the tasks and publishing the results cost the workers.
        fleet: The workers that published lately, by the number of their id (number_of).
        window: How many chunks may be open; 0: the package is closed.
        window_since: Version of the head that last changed the window. Only results of chunks cut since then may
            change it again: older ones waited behind another number of chunks.
    """

    mean_us: float = 0.0
    measured: int = 0
    execute_us: int = 0
    retrieve_us: int = 0
    publish_us: int = 0
    fleet: dict[int, Member] = {}
    window: int
    window_since: int = 0

    def draft(self) -> "Pace":
        """A copy with a fleet of its own, for a fold to change."""
        return replace(self, fleet=dict(self.fleet))

    @property
    def executors(self) -> int:
        """How many executors the workers that published lately have."""
        return sum(member.executors for member in self.fleet.values())

    @property
    def closed(self) -> bool:
        """Whether it waits, without chunks or quota, since enough packages of its account are open."""
        return self.window == 0


def number_of(worker_id: str) -> int:
    """Return the number of a worker in a fleet: 5 bytes, where its id may have 800.

    Workers with the same number count as one.
    """
    return crc32(worker_id.encode())
