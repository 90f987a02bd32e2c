"""The same services on several adapters: their answers to the same requests must be equal."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cloudpar_master.adapters.embedded.database import Database
from cloudpar_master.adapters.system import RandomIds
from cloudpar_master.core.policy import Policy
from cloudpar_master.ports import AccountRecord, PackageStore
from cloudpar_master.services.backend import hash_token
from cloudpar_master.services.dispatcher import Dispatcher
from cloudpar_master.services.timer import Timer
from cloudpar_protocol.errors import RequestError
from cloudpar_protocol.routes import Route
from cloudpar_protocol.worker_messages import Lease
from support.backends import backend_on, call
from support.clock import NOW, SetClock
from support.ids import CountedIds
from support.memory.stores import Data, over
from support.stores import Stores, sqlite_stores

POLICY = Policy(first_window=2, lease_s=6.0, slice_us=100_000, chunk_target_us=100_000)

PLENTY_US = 10**12
ACCOUNTS = {"ann": PLENTY_US, "bob": 40_000}
ENOUGH_US = 1_800_000_000
"""An adapter may remember for a while that an account has at least this much."""

Opening = Callable[[Path, SetClock], AbstractContextManager[Callable[[], Stores]]]
"""Opens a function that makes new adapters without data at each call."""


class Ordered:
    """A package store that sorts what is due: the port promises no order, and the first package gets a slice."""

    def __init__(self, packages: PackageStore) -> None:
        self._packages = packages

    def due(self, now: float, limit: int) -> list[str]:
        return sorted(self._packages.due(now, limit))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._packages, name)


class Side:
    """One deployment. Its leases differ from those of other sides, since they have the receipts of its queue."""

    def __init__(self, stores: Stores, clock: SetClock) -> None:
        self.stores = stores
        self.leases: list[Lease] = []
        packages: Any = Ordered(stores.packages)
        backend = backend_on(stores._replace(packages=packages), clock, POLICY, ids=CountedIds())
        self._dispatcher = Dispatcher(backend)
        self.timer = Timer(backend)
        for name, granted_us in ACCOUNTS.items():
            stores.accounts.create(AccountRecord(name, name, hash_token(name), "active", granted_us, 0, 0, NOW))

    def ask(self, token: str, route: Route[Any, Any], request: Struct) -> Any:
        """Send a request over the wire, and return the reply or the error."""
        try:
            return call(self._dispatcher, token, route, request)
        except RequestError as error:
            return error


def alike(answer: Any) -> Any:
    """Return an answer without what differs by adapter: receipts, links, and exact times in a queue."""
    if isinstance(answer, RequestError):
        return type(answer).__name__, str(answer)
    return _plain(msgspec.to_builtins(answer))


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: _figure(name, _plain(each), value) for name, each in value.items()}


def _figure(name: str, value: Any, record: dict[str, Any]) -> Any:
    if name in {"receipt", "url", "headers", "upload_id", "parts"}:
        return None
    if name == "wait_us":
        return wait_us(value, record.get("attempt", 1))
    return min(value, ENOUGH_US) if name == "budget_us" else value


def wait_us(measured_us: int, attempt: int) -> int:
    """Return how long a chunk waited in the queue, in whole seconds; 0 after the first delivery: SQS does not say."""
    return round(measured_us / 1e6) * 1_000_000 if attempt == 1 else 0


@contextmanager
def memory(folder: Path, clock: SetClock) -> Iterator[Callable[[], Stores]]:
    """Open adapters in memory."""
    yield lambda: over(Data(), folder / "memory", clock, RandomIds())


TABLES = (
    "packages", "specs", "inbox", "pages", "accounts", "slices", "settlements", "usage", "grants", "messages",
    "sent_groups", "attempts",
)  # fmt: skip


@contextmanager
def sqlite(folder: Path, clock: SetClock) -> Iterator[Callable[[], Stores]]:
    """Open adapters on a database, which is emptied before every run."""
    folder.mkdir(parents=True, exist_ok=True)
    with closing(Database(folder / "model.sqlite")) as database:

        def fresh() -> Stores:
            with database.transaction():
                for table in TABLES:
                    database.execute(f"DELETE FROM {table}")  # noqa: S608 - constants
            return sqlite_stores(database, folder, clock)

        yield fresh
