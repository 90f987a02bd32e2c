from typing import Final

from cloudpar_master.core.fleet_size import UNREAD, work_of
from cloudpar_master.core.shortage import looked
from cloudpar_master.ports import FleetSize

from .backend import Backend

HEADS: Final = 1_000
"""How many heads one call of `tick` reads at most. Each further package counts as one chunk of unknown duration."""


class ShortFleet(Exception):
    """The fleet has had too few working hosts for minutes, and no further host has started to work."""


class SilentFleet(ShortFleet):
    """Hosts of the fleet run, but no workers on them reach the master."""


class MissingHosts(ShortFleet):
    """The hosts that the work needs do not run."""


class FleetKeeper:
    """Makes the fleet large enough for all packages, once a minute, and reports hosts that are missing or do not work.

    A call that fails is not repeated at once: a minute later, the next call sees the same work. The keeper itself
    remembers nothing, because AWS may replace its process at any time.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def tick(self) -> None:
        """Start the hosts that are missing for the work of all packages, unless the fleet must not grow now (Shortage).

        Raises:
            ShortFleet: Hosts are missing, or run without a worker that reaches the master, for so long that the fleet
                pauses. The error is raised each minute until a further host works or no host is needed. An alarm
                reports errors of the timer, so the operator learns about it.
        """
        fleet, now = self._backend.fleet, self._backend.clock.now()
        at_work = self._backend.packages.at_work(HEADS)
        works = [*(work_of(head, self._backend.policy) for head in at_work.heads), *[UNREAD] * at_work.others]
        size, before = fleet.size(works), fleet.shortage()
        working = self._working(size)
        # A host that runs although no work needs it counts, too: if it neither works nor ends itself, it costs money
        # until the operator ends it.
        shortage = looked(before, now, working, max(size.needed, len(size.running)), size.template)
        if shortage != before:
            fleet.note(shortage)
        fleet.grow(works)
        if shortage.pauses:
            raise _report(size, working)

    def _working(self, size: FleetSize) -> int:
        """Count the fleet's running hosts from which a worker has sent requests lately.

        Workers on other machines do not count. Otherwise one of them could hide that no host of the fleet works.
        """
        if not size.running:
            return 0
        since = self._backend.clock.now() - self._backend.policy.fleet_memory_s
        workers = self._backend.registry.workers(since, newest=True)
        return len(size.running & {worker.host for worker in workers})


def _report(size: FleetSize, working: int) -> ShortFleet:
    running = len(size.running)
    if running > working:
        return SilentFleet(f"{running} hosts of the fleet run, and workers of only {working} reach the master")
    return MissingHosts(f"the work needs {size.needed} hosts, the fleet wants {size.wanted}, and {running} run")
