from collections.abc import Sequence
from typing import NamedTuple, Protocol

from cloudpar_master.core.fleet_size import Work
from cloudpar_protocol.client_messages import FleetStatus


class FleetSize(NamedTuple):
    """How many hosts (machines) are wanted, and how many of them run. Hosts that are ending do not count."""

    wanted: int
    running: int


class Fleet(Protocol):
    """The hosts (machines) of the workers. Some masters can start and count them.

    The calls raise no errors. They are cheap: on AWS, a process usually requests the state of the hosts only once in
    some seconds.
    """

    def grow(self, works: Sequence[Work]) -> None:
        """Start as many hosts as are missing for this work. If that fails, only log the failure.

        The timer's next call repeats what failed. No call ever ends a host, whatever other processes do at the same
        time: hosts end themselves when they have no work.
        """

    def size(self) -> FleetSize | None:
        """Return the size of the fleet; None if the size is unknown. The answer is not older than this call."""

    def status(self) -> FleetStatus | None:
        """Return how many hosts run, how many are starting, and why no more can start; None if that is unknown.

        The answer may be some seconds old.
        """


class StandingFleet:
    """Hosts of workers that an operator or a pool starts and stops: the master neither starts nor counts them."""

    def grow(self, works: Sequence[Work]) -> None:
        """Do nothing: the master cannot start these hosts."""

    def size(self) -> FleetSize | None:
        """Return None: no service counts these hosts."""
        return None

    def status(self) -> FleetStatus | None:
        """Return None: no service counts these hosts."""
        return None
