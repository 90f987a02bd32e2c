"""A worker that reports what it can run."""

from cloudpar_protocol.payloads import Unfit
from cloudpar_protocol.worker_messages import GiveBack, Lease, RetrieveTasks, RetrieveTasksReply, Return
from support.world import World

LACKS = Unfit("host-a", "no module named 'numpy'")


class Agent:
    """A worker that reports what it can run.

    Attributes:
        set_aside: The packages that it has found it cannot run.
    """

    def __init__(
        self,
        world: World,
        name: str,
        *pythons: str,
        host: str = "",
        executors: int = 1,
        own: bool = False,
        offline: bool = False,
    ) -> None:
        self.name = name
        self.set_aside: list[str] = []
        self._world = world
        self._host = host or f"host-{name}"
        self._executors, self._own, self._offline = executors, own, offline
        self._pythons = list(pythons) or ["3.11"]

    def ask(self, chunks: int = 1) -> RetrieveTasksReply:
        request = RetrieveTasks(
            attempt_id=f"{self.name} {next(self._world.numbers)}", worker_id=self.name, executors=self._executors,
            chunks=chunks, host=self._host, pythons=self._pythons, set_aside=self.set_aside,
            own=self._own, offline=self._offline,
        )  # fmt: skip
        return self._world.worker.retrieve_tasks(request)

    def take(self, chunks: int = 1) -> list[Lease]:
        return self.ask(chunks).leases

    def give_back(self, lease: Lease, used_us: int = 0) -> None:
        """Give a lease back, since the worker lacks something that the package needs."""
        self.set_aside.append(lease.package_id)
        back = Return(
            **lease.identity(), seq=0, ranges=lease.ranges, closes=True, unfit=LACKS,
            used_us=used_us,
        )  # fmt: skip
        self._world.worker.give_back(GiveBack(worker_id=self.name, returns=[back]))
