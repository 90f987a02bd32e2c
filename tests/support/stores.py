"""The adapters of one process of a master. The suites in tests/master run on each of FACTORIES."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

from cloudpar_master.adapters.embedded.account_store import SqliteAccountStore
from cloudpar_master.adapters.embedded.blob_store import FileBlobStore
from cloudpar_master.adapters.embedded.database import Database
from cloudpar_master.adapters.embedded.package_store import SqlitePackageStore, code_in_use
from cloudpar_master.adapters.embedded.task_queue import SqliteTaskQueue
from cloudpar_master.adapters.embedded.worker_registry import MemoryWorkerRegistry
from cloudpar_master.adapters.system import RandomIds
from cloudpar_master.ports import AccountStore, BlobStore, Ids, PackageStore, TaskQueue, WorkerRegistry
from cloudpar_master.server.app import App
from cloudpar_master.server.blob_routes import BlobRoutes
from cloudpar_master.server.failure_log import FailureLog
from cloudpar_master.server.fair_shares import FairShares
from cloudpar_master.server.storage_state import StorageState
from cloudpar_protocol.payloads import Link
from support.asgi import Answer, exchange
from support.clock import SetClock


class Transfer(Protocol):
    """Does exactly what a link says, as its holder does."""

    def __call__(self, link: Link, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Answer: ...


class Stores(NamedTuple):
    """The adapters of one process."""

    packages: PackageStore
    accounts: AccountStore
    queue: TaskQueue
    registry: WorkerRegistry
    blobs: BlobStore
    ids: Ids
    transfer: Transfer


Factory = Callable[[Path, SetClock], AbstractContextManager[Stores]]
"""Opens the adapters of one process on the data that belong to a folder; several may be open on the same one."""


@contextmanager
def embedded(folder: Path, clock: SetClock) -> Iterator[Stores]:
    """SQLite and files."""
    with closing(Database(folder / "master.sqlite")) as database:
        yield sqlite_stores(database, folder, clock)


def sqlite_stores(database: Database, folder: Path, clock: SetClock) -> Stores:
    """Make the adapters of one process on a database, with blobs in a folder."""
    database.execute("PRAGMA synchronous = OFF")  # no test cuts the power
    ids = RandomIds()
    blobs = FileBlobStore(
        folder / "blobs", lambda: "http://master.test", b"secret", clock, code_in_use=partial(code_in_use, database)
    )
    packages = SqlitePackageStore(database, started=blobs.started)
    shares, failures, others = FairShares(), FailureLog(StorageState()), cast("Any", None)
    app = App(others, others, BlobRoutes(blobs, packages, shares, failures), failures, shares)

    def transfer(link: Link, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Answer:
        return exchange(app, link.method, link.url, body, {**link.headers, **(headers or {})})

    return Stores(
        packages=packages,
        accounts=SqliteAccountStore(database, clock),
        queue=SqliteTaskQueue(database, clock, ids),
        registry=MemoryWorkerRegistry(),
        blobs=blobs,
        ids=ids,
        transfer=transfer,
    )


FACTORIES: list[Factory] = [embedded]
