from typing import Final

from cloudpar_master.core.fleet_size import UNREAD, work_of

from .backend import Backend

HEADS: Final = 1_000
"""How many heads one look reads at most. Each further package counts as one chunk of unknown duration."""

SILENT_S: Final = 600.0
"""For how many seconds hosts may run without any worker that sends requests. A host boots in a fraction of this."""


class SilentFleet(Exception):
    """Hosts of the fleet run, but no worker on them reaches the master."""


class FleetKeeper:
    """Makes the fleet large enough for all packages, once a minute.

    A call that fails is not repeated at once: a minute later, the next call sees the same work.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._silent_since: float | None = None

    def tick(self) -> None:
        """Start the hosts that are missing for the work of all packages.

        Raises:
            SilentFleet: Hosts have run for SILENT_S, and in all this time no worker was there. An alarm reports errors
                of the timer, so the operator hears of hosts that cost money and do nothing.
        """
        at_work = self._backend.packages.at_work(HEADS)
        self._backend.fleet.grow([*map(work_of, at_work.heads), *[UNREAD] * at_work.others])
        now, hosts = self._backend.clock.now(), self._silent_hosts()
        self._silent_since = None if not hosts else now if self._silent_since is None else self._silent_since
        if self._silent_since is not None and now - self._silent_since >= SILENT_S:
            raise SilentFleet(f"{hosts} hosts run, and no worker on them has reached the master for 10 minutes")

    def _silent_hosts(self) -> int:
        """Return how many hosts run while there is no live worker."""
        size = self._backend.fleet.size()
        if size is None or not size.running:
            return 0
        since = self._backend.clock.now() - self._backend.policy.fleet_memory_s
        return 0 if self._backend.registry.workers(since, newest=True) else size.running
