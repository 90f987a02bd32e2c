"""An Auto Scaling group whose hosts take time to boot."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cloudpar_master.core.fleet_size import HostShape, Work, hosts_needed
from cloudpar_master.core.shortage import NO_SHORTAGE, Shortage
from cloudpar_master.ports import Fleet, FleetSize
from cloudpar_protocol.client_messages import FleetStatus

from . import limits

if TYPE_CHECKING:
    from .services import Deployment

CHUNKS_PER_EXECUTOR = 2
LAUNCHES_PER_S = 10
"""How many hosts the group starts in a second. This is an assumption; it is slow compared with the request limits that
EC2 documents.
"""


class Group(Fleet):
    """A group that has no host at first. It never removes a host, because no host of the model becomes idle."""

    def __init__(self, deployment: "Deployment", largest: int, on_host: int, boot: Callable[[str], None]) -> None:
        self._schedule = deployment.schedule
        self._largest = largest
        self._shape = HostShape(on_host, CHUNKS_PER_EXECUTOR)
        self._boot = boot
        self._wanted = 0
        self._running: set[str] = set()

    def grow(self, works: Sequence[Work]) -> None:
        """See the port."""
        wanted = min(hosts_needed(works, self._shape), self._largest)
        for number in range(wanted - self._wanted):
            # The hosts of one step start one after the other.
            name, self._wanted = f"{self._wanted:032x}", self._wanted + 1
            wait_us = limits.BOOT.us + number * 1_000_000 // LAUNCHES_PER_S
            self._schedule.after(wait_us, lambda name=name: self._start(name))  # type: ignore[misc]

    def _start(self, name: str) -> None:
        self._running.add(name)
        self._boot(name)

    def size(self, works: Sequence[Work]) -> FleetSize:
        """See the port."""
        needed = min(hosts_needed(works, self._shape), self._largest)
        return FleetSize(needed, self._wanted, frozenset(self._running), "template")

    def shortage(self) -> Shortage:
        """See the port."""
        return NO_SHORTAGE

    def note(self, shortage: Shortage) -> None:
        """See the port."""

    def status(self) -> FleetStatus | None:
        """See the port."""
        return None
