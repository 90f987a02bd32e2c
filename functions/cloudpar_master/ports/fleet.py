from typing import Protocol

from cloudpar_protocol.client_messages import FleetStatus


class Fleet(Protocol):
    """The hosts of workers, which a master can wake and count. No call ever fails, and each is cheap to make often."""

    def wake(self) -> None:
        """Make sure that a worker starts, since there is work."""
        ...

    def status(self) -> FleetStatus | None:
        """Return the hosts as they are now, or were some seconds ago; None: unknown."""
        ...


class StandingFleet:
    """Workers that an operator or a pool starts, and that stay."""

    def wake(self) -> None:
        """Do nothing: these hosts are awake."""

    def status(self) -> FleetStatus | None:
        """Return None: no service counts these hosts."""
        return None
