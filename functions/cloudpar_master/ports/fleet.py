from typing import Protocol

from cloudpar_protocol.client_messages import FleetStatus


class Fleet(Protocol):
    """The hosts of workers, which a master can wake and count. The calls never fail, and they are cheap."""

    def wake(self) -> None:
        """Make sure that at least one host runs or starts, since there is work."""
        ...

    def status(self) -> FleetStatus | None:
        """Return how many hosts run and start; the numbers may be some seconds old. None if they are unknown."""
        ...


class StandingFleet:
    """Hosts of workers that an operator or a pool starts and stops: the master neither wakes nor counts them."""

    def wake(self) -> None:
        """Do nothing: these hosts are not the master's to start."""

    def status(self) -> FleetStatus | None:
        """Return None: no service counts these hosts."""
        return None
