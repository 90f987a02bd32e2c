"""Adapters in memory, which are fast enough for tests of many runs. The conformance suite checks them, too."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from cloudpar_master.adapters.embedded.blob_store import FileBlobStore
from cloudpar_master.adapters.embedded.worker_registry import MemoryWorkerRegistry
from cloudpar_master.adapters.system import RandomIds
from cloudpar_master.ports import Clock, Ids
from cloudpar_protocol.payloads import Link
from support.asgi import Answer
from support.clock import SetClock
from support.memory.accounts import MemoryAccountStore, StoredAccounts
from support.memory.packages import MemoryPackageStore, Package
from support.memory.queue import Letters, MemoryTaskQueue
from support.stores import Stores


class Data:
    """The data that the processes of one deployment share."""

    def __init__(self) -> None:
        self.packages: dict[str, Package] = {}
        self.numbers = count()
        self.books = StoredAccounts()
        self.letters = Letters()
        self.registry = MemoryWorkerRegistry()


def transfer(link: Link, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Answer:
    """Fail: no server serves these links."""
    raise AssertionError(link)


def over(data: Data, folder: Path, clock: Clock, ids: Ids) -> Stores:
    """Make the adapters of one process. Only links to blobs are handed out; no test reads the blobs.

    The disk of the machine is never full to them, so that the simulation does the same in each run.
    """
    return Stores(
        packages=MemoryPackageStore(data.packages, data.numbers),
        accounts=MemoryAccountStore(data.books, clock),
        queue=MemoryTaskQueue(data.letters, clock, ids),
        blobs=FileBlobStore(
            folder / "blobs", lambda: "http://master.test", b"secret", clock, code_in_use=set, reserves=False
        ),
        registry=data.registry,
        ids=ids,
        transfer=transfer,
    )


_data: dict[Path, Data] = {}


@contextmanager
def in_memory(folder: Path, clock: SetClock) -> Iterator[Stores]:
    """Open the memory that belongs to a folder."""
    first = folder not in _data
    try:
        yield over(_data.setdefault(folder, Data()), folder, clock, RandomIds())
    finally:
        if first:
            del _data[folder]
