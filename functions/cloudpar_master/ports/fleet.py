from typing import Protocol

from cloudpar_protocol.client_messages import FleetStatus


class Fleet(Protocol):
    """The workers' hosts, as far as a master can do something about them."""

    def wake(self) -> None:
        """There is work: see to it that a worker will come. Never fails, and may be called as often as one likes."""
        ...


class FleetWatch(Protocol):
    """Whoever knows how many of the workers' hosts there are."""

    def status(self) -> FleetStatus | None:
        """The hosts now, or seconds ago; None: not known. Never fails; may be called as often as one likes."""
        ...


class StandingFleet:
    """Workers that somebody else starts, and that stay."""

    def wake(self) -> None:
        """They are awake."""

    def status(self) -> FleetStatus | None:
        """Nobody counts them."""
        return None
