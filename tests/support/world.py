"""A master without a server: the services, a clock that a test moves, and short names for requests."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from cloudpar_master.core.head import Head
from cloudpar_master.core.policy import Policy
from cloudpar_master.ports import AccountRecord
from cloudpar_master.services.account_service import AccountService
from cloudpar_master.services.backend import Backend, hash_token
from cloudpar_master.services.client_service import ClientService
from cloudpar_master.services.dispatcher import Dispatcher
from cloudpar_master.services.folding import Folding
from cloudpar_master.services.steps import finish
from cloudpar_master.services.timer import Due, Timer
from cloudpar_master.services.worker_service import WorkerService
from cloudpar_protocol.account_messages import CreateAccount
from cloudpar_protocol.client_messages import (
    Acknowledge,
    AwaitTasks,
    AwaitTasksReply,
    CancelTasks,
    CancelTasksReply,
    Cursor,
    PackageStatus,
    StartTasks,
)
from cloudpar_protocol.errors import Outcome
from cloudpar_protocol.payloads import Range, RangeData, TaskCode, TaskResult
from cloudpar_protocol.worker_messages import (
    ExtendLeases,
    GiveBack,
    Lease,
    LeaseRef,
    LeaseView,
    Publication,
    PublishResults,
    PublishResultsReply,
    RetrieveTasks,
    Return,
)
from support.backends import backend_on
from support.clock import SetClock
from support.stores import Factory, Stores, embedded

HOUR_US = 3_600_000_000
POLICY = Policy()
CODE = TaskCode("0" * 64, b"code")


def start_tasks(key: str, tasks: int = 10, **changes: Any) -> StartTasks:
    request = StartTasks(idempotency_key=key, n=tasks, code=CODE, data=RangeData(0, 1), python="3.11", chunksize=5)
    return replace(request, **changes)


class PromptTimer:
    """A timer that does all of its steps at once."""

    def __init__(self, backend: Backend) -> None:
        self._timer = Timer(backend)
        self.lost = self._timer.lost

    def tick(self) -> int:
        return finish(self._timer.tick())

    def fold_due(self) -> Due:
        return finish(self._timer.fold_due())


class World:
    """One process of a master."""

    def __init__(self, backend: Backend, clock: SetClock) -> None:
        self.backend = backend
        self.clock = clock
        self.dispatcher = Dispatcher(backend)
        folding = Folding(backend)  # one for all services, as in Dispatcher
        self.client = ClientService(backend, folding=folding)
        self.worker = WorkerService(backend, folding)
        self.accounts = AccountService(backend, folding=folding)
        self.timer = PromptTimer(backend)
        self.numbers = count()

    def account(self, name: str = "ann", quota_us: int = HOUR_US) -> AccountRecord:
        request = CreateAccount(idempotency_key=name, name=name, token_hash=hash_token(name), quota_us=quota_us)
        return self.record(self.accounts.create_account(request).account.account_id)

    def record(self, account_id: str) -> AccountRecord:
        account = self.backend.accounts.get(account_id)
        assert account is not None
        return account

    def head(self, package_id: str) -> Head:
        head = self.backend.packages.load(package_id)
        assert head is not None
        return head

    def put(self, key: str) -> None:
        """Store a blob, as an upload does."""
        path = self.backend.blobs._path(key)  # type: ignore[attr-defined]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"payload")

    # the client

    def start(self, account: AccountRecord, tasks: int = 10, **changes: Any) -> str:
        request = start_tasks(f"key {next(self.numbers)}", tasks, **changes)
        return self.client.start_tasks(account, request).package_id

    def news(self, account: AccountRecord, *package_ids: str, cursor: int = 0) -> AwaitTasksReply:
        packages = [Cursor(package_id=package_id, cursor=cursor) for package_id in package_ids]
        return self.client.await_tasks(account, AwaitTasks(packages=packages))

    def status(self, account: AccountRecord, package_id: str, cursor: int = 0) -> PackageStatus:
        (status,) = self.news(account, package_id, cursor=cursor).packages
        return status

    def cancel(self, account: AccountRecord | None, package_id: str, **changes: Any) -> CancelTasksReply:
        return self.client.cancel_tasks(account, CancelTasks(package_id=package_id, **changes))

    def acknowledge(self, account: AccountRecord, *package_ids: str) -> None:
        finish(self.client.acknowledge(account, Acknowledge(package_ids=list(package_ids))))

    # a worker

    def retrieve(self, worker_id: str = "w", chunks: int = 100, executors: int = 2, attempt: str = "") -> list[Lease]:
        request = RetrieveTasks(
            attempt_id=attempt or f"attempt {next(self.numbers)}",
            worker_id=worker_id,
            executors=executors,
            chunks=chunks,
        )
        return self.worker.retrieve_tasks(request).leases

    def retrieve_all(self, executors: int = 2) -> list[Lease]:
        """Retrieve until nothing comes."""
        leases: list[Lease] = []
        while more := self.retrieve(executors=executors):
            leases += more
        return leases

    def lease(self, worker_id: str = "w") -> Lease:
        (lease,) = self.retrieve(worker_id, chunks=1)
        return lease

    def publish(self, *publications: Publication, worker_id: str = "w") -> PublishResultsReply:
        request = PublishResults(worker_id=worker_id, executors=2, publications=list(publications))
        return finish(self.worker.publish_results(request))

    def extend(self, *leases: Lease, worker_id: str = "w") -> list[LeaseView]:
        refs = [LeaseRef(**lease.identity()) for lease in leases]
        return self.worker.extend_leases(ExtendLeases(worker_id=worker_id, leases=refs)).leases

    def give_back(self, lease: Lease, *ranges: Range, seq: int = 0, closes: bool = False) -> None:
        back = Return(**lease.identity(), seq=seq, ranges=list(ranges), closes=closes, attempt=lease.attempt)
        self.worker.give_back(GiveBack(worker_id="w", returns=[back]))

    def work(self, leases: Iterable[Lease], duration_us: int = 1_000) -> None:
        for lease in leases:
            self.publish(publication(lease, duration_us=duration_us))

    def work_all(self, duration_us: int = 1_000) -> None:
        """Retrieve and publish until nothing is left."""
        while leases := self.retrieve():
            self.work(leases, duration_us)

    def settle(self) -> None:
        """Let the time pass that a worker has for reporting what it stopped."""
        self.clock.move(2 * POLICY.lease_s + 1)
        self.timer.tick()


def publication(
    lease: Lease,
    indices: Sequence[int] | None = None,
    *,
    outcome: Outcome = "ok",
    duration_us: int = 1_000,
    seq: int = 0,
    closes: bool | None = None,
    data: bytes = b"value",
    **changes: Any,
) -> Publication:
    """Make a publication of some tasks of a lease, or of all of them."""
    if indices is None:
        indices = [index for start, end in lease.ranges for index in range(start, end)]
        closes = True if closes is None else closes
    results = [TaskResult(index, outcome, duration_us, data=data) for index in indices]
    changes.setdefault("wait_us", lease.wait_us)
    return Publication(**lease.identity(), seq=seq, results=results, closes=bool(closes), **changes)


def all_results(status: PackageStatus) -> list[int]:
    return [result.index for result in status.results]


def world_on(stores: Stores, clock: SetClock, policy: Policy = POLICY) -> World:
    """Start a process with these adapters."""
    return World(backend_on(stores, clock, policy), clock)


@contextmanager
def master(
    folder: Path, policy: Policy = POLICY, clock: SetClock | None = None, factory: Factory = embedded
) -> Iterator[World]:
    """Open a process on the data of a folder. Several may be open on the same one."""
    clock = clock or SetClock()
    with factory(folder, clock) as stores:
        yield world_on(stores, clock, policy)
