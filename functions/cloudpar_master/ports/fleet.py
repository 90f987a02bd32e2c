from collections.abc import Sequence
from typing import NamedTuple, Protocol

from cloudpar_master.core.fleet_size import Work
from cloudpar_master.core.shortage import NO_SHORTAGE, Shortage
from cloudpar_protocol.client_messages import FleetStatus


class FleetSize(NamedTuple):
    """How large the fleet should be, and which of its hosts (machines) run.

    Attributes:
        needed: How many hosts the work needs, but not more than the fleet may have.
        wanted: The number of hosts that is set for the fleet (on AWS, the group's desired capacity).
        running: The names under which the workers of the running hosts report. Hosts that are ending do not count.
        template: What new hosts are made from. The text changes with each change of the hosts' image or setup.
    """

    needed: int = 0
    wanted: int = 0
    running: frozenset[str] = frozenset()
    template: str = ""


class Fleet(Protocol):
    """The hosts (machines) of the workers. Some masters can start and count them.

    `grow` and `status` raise no errors. They are cheap: on AWS, a process usually requests the state of the hosts only
    once in some seconds.
    """

    def grow(self, works: Sequence[Work]) -> None:
        """Start as many hosts as are missing for this work, unless a shortage says that the fleet must not grow now.

        If that fails, only log the failure. The timer's next call repeats what failed. No call ever ends a host,
        whatever other processes do at the same time: hosts end themselves when they have no work.
        """

    def size(self, works: Sequence[Work]) -> FleetSize:
        """Return the size of the fleet, and how large it should be for this work. The answer is never old."""

    def shortage(self) -> Shortage:
        """Return the shortage that was noted last, by any process."""

    def note(self, shortage: Shortage) -> None:
        """Store a shortage. From now on, no process makes the fleet larger before `resumes_at`."""

    def status(self) -> FleetStatus | None:
        """Return how many hosts run, how many are starting, and why no more can start; None if that is unknown.

        The answer may be some seconds old.
        """


class StandingFleet:
    """Hosts of workers that an operator or a pool starts and stops: the master neither starts nor counts them."""

    def grow(self, works: Sequence[Work]) -> None:
        """Do nothing: the master cannot start these hosts."""

    def size(self, works: Sequence[Work]) -> FleetSize:
        """Return that the work needs no hosts of the master."""
        del works
        return FleetSize()

    def shortage(self) -> Shortage:
        """Return that there is no shortage."""
        return NO_SHORTAGE

    def note(self, shortage: Shortage) -> None:
        """Do nothing: without hosts of its own, the master notes no shortage."""

    def status(self) -> FleetStatus | None:
        """Return None: no service counts these hosts."""
        return None
