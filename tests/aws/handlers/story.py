"""What an account's client and a worker do on a deployment, whichever release serves it."""

import os
import zlib
from typing import Any, NamedTuple

from aws.stores import transfer
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import PrepareUploads, StartTasks, Upload
from cloudpar_protocol.payloads import BlobData, BlobRef, InlineData, TaskCode, TaskResult
from cloudpar_protocol.worker_messages import Lease, Publication, PublishResults, RetrieveTasks

from .releases import TOKEN, Deployment

DURATION_US = 1_000
TASKS = 4
CHARGE_US = TASKS * DURATION_US + sum(range(TASKS))
"""The time of all tasks of a package."""

SMALL, MEDIUM, LARGE = 10, 5_000, 20_000
"""Sizes of a result in bytes. Release 0.3.0 stores a page of results as a row if it has up to 16,000 bytes, and this
release if it has up to 3,000 bytes. Larger pages are objects."""
WORKER: dict[str, Any] = {"worker_id": "worker", "executors": 2}


class Package(NamedTuple):
    """A package that a client has started."""

    package_id: str
    token: str
    start: StartTasks
    result_bytes: int

    def result(self, task: int) -> TaskResult:
        """Return a result of a task. Compression does not make it smaller."""
        return TaskResult(task, "ok", DURATION_US + task, data=os.urandom(self.result_bytes))


class Story:
    """What happens on a deployment, whichever release serves it."""

    def __init__(self) -> None:
        self.packages: dict[str, Package] = {}
        self.published: dict[tuple[str, int], TaskResult] = {}
        self._retrievals = 0

    def start(self, on: Deployment, name: str, *, size: int = SMALL, token: str = TOKEN, **more: Any) -> None:
        """Start a package of two chunks."""
        fields = {"code": TaskCode("0" * 64, b"code"), "data": InlineData([b"item"] * TASKS)} | more
        start = StartTasks(idempotency_key=name, n=TASKS, python="3.11", chunksize=2, **fields)
        self.packages[name] = Package(on.ask(routes.START_TASKS, start, token).package_id, token, start, size)

    def retrieve(self, on: Deployment) -> list[Lease]:
        """Return the leases of all chunks in the queue."""
        leases: list[Lease] = []
        while True:
            self._retrievals += 1
            asked = RetrieveTasks(
                **WORKER, attempt_id=f"{self._retrievals}", chunks=10, host="host-a", pythons=["3.11", "3.12"]
            )
            more = on.ask(routes.RETRIEVE_TASKS, asked).leases
            if not more:
                return leases
            leases += more

    def publish(self, on: Deployment, lease: Lease, *, first: int, last: int, seq: int) -> None:
        """Publish some results of a lease. The last publication, which closes the lease, has the seq 1."""
        package = next(each for each in self.packages.values() if each.package_id == lease.package_id)
        results = [package.result(task) for task in range(first, last)]
        self.published |= {(lease.package_id, each.index): each for each in results}
        publication = Publication(**lease.identity(), seq=seq, results=results, closes=seq == 1)
        asked = PublishResults(**WORKER, publications=[publication])
        for _ in range(2):  # the first answer was lost
            on.ask(routes.PUBLISH_RESULTS, asked)

    def run(self, on: Deployment) -> None:
        """Run the tasks of all chunks in the queue."""
        for lease in self.retrieve(on):
            self.publish(on, lease, first=lease.start, last=lease.end, seq=1)

    def upload(self, on: Deployment) -> BlobData:
        """Upload task data."""
        body = b"item" * TASKS + b"".join((4 * number).to_bytes(8, "little") for number in range(TASKS + 1))
        asked = Upload(kind="data", size=len(body), crc32=zlib.crc32(body))
        (made,) = on.ask(routes.PREPARE_UPLOADS, PrepareUploads(uploads=[asked]), TOKEN).uploads
        assert made.link is not None
        assert transfer(made.link, body).status == 200
        return BlobData(BlobRef(made.key, len(body)))

    def read(self, on: Deployment, name: str) -> tuple[str, int]:
        """Check that a package has the results that were published. Returns its state and its charge."""
        package = self.packages[name]
        results: list[TaskResult] = []
        cursor, more = 0, True
        while more:
            status = on.status(package.package_id, package.token, cursor)
            results += status.results
            cursor, more = status.cursor, status.more
        assert results == [self.published[package.package_id, each.index] for each in results]
        assert len(results) == len({each.index for each in results})
        if status.state == "completed":
            assert len(results) == TASKS
        return status.state, status.progress.charged_us
