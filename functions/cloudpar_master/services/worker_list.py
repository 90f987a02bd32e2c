"""Lists the live workers for operators."""

from collections.abc import Sequence

from cloudpar_master.core.head import HOST_BYTES, Head, cut
from cloudpar_master.ports import WorkerRecord
from cloudpar_protocol.fleet_messages import ConnectedWorker, ListWorkersReply, SetAside

from .backend import Backend

LOOKED_UP = 100
"""How many packages are read, at most, to say why workers are set aside for them. On AWS this costs at most two
requests. The list gives no reasons for further packages."""


class WorkerList:
    """Lists the workers that sent requests lately. On AWS this costs a query and at most two further requests."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def list_workers(self) -> ListWorkersReply:
        """List all live workers, in the order of their hosts' names."""
        clock = self._backend.clock
        now = clock.now()
        workers = sorted(
            self._backend.registry.workers(now - self._backend.policy.fleet_memory_s),
            key=lambda worker: (worker.host, worker.worker_id),
        )
        heads = self._heads(workers)
        shown = [_view(worker, heads, clock.date(worker.seen_at)) for worker in workers]
        return ListWorkersReply(now=clock.date(now), workers=shown)

    def _heads(self, workers: Sequence[WorkerRecord]) -> dict[str, Head]:
        newest_first = [package_id for worker in workers for package_id in reversed(worker.fit.set_aside)]
        wanted = list(dict.fromkeys(newest_first))[:LOOKED_UP]
        return {head.package_id: head for head in self._backend.packages.heads(wanted)} if wanted else {}


def _view(worker: WorkerRecord, heads: dict[str, Head], seen_at: float) -> ConnectedWorker:
    return ConnectedWorker(
        worker_id=worker.worker_id,
        host=worker.host,
        executors=worker.executors,
        pythons=list(worker.fit.pythons),
        seen_at=seen_at,
        set_aside=[
            SetAside(package_id=package_id, lacks=_lacks(worker, heads.get(package_id)))
            for package_id in worker.fit.set_aside
        ],
    )


def _lacks(worker: WorkerRecord, head: Head | None) -> str:
    """Return what this worker's host lacks, as the package's head records it; "" if the head does not name the host.

    A head records only the first workers that could not run the package.
    """
    host = cut(worker.host, HOST_BYTES)
    return next((each.lacks for each in (head.life.set_aside if head else []) if each.host == host), "")
