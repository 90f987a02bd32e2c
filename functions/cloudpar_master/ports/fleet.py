from typing import Protocol

from cloudpar_protocol.client_messages import FleetStatus


class Fleet(Protocol):
    """The hosts of workers, which a master may be able to wake and count.

    The calls raise no errors. They are cheap: on AWS, a process usually looks at the hosts once in some seconds only.
    """

    def wake(self) -> None:
        """Start a host if none runs or starts, since there is work. If that fails, only log the failure."""

    def status(self) -> FleetStatus | None:
        """Return how many hosts run and start, and why no more can start; None if that is unknown.

        The answer may be some seconds old.
        """


class StandingFleet:
    """Hosts of workers that an operator or a pool starts and stops: the master neither wakes nor counts them."""

    def wake(self) -> None:
        """Do nothing: the master cannot start these hosts."""

    def status(self) -> FleetStatus | None:
        """Return None: no service counts these hosts."""
        return None
