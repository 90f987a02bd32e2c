"""The data of a deployment in parts. Each port call reads or changes one part only, and is one step."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from types import SimpleNamespace
from typing import Any, Final, NamedTuple, cast

import msgspec
from msgspec import Struct, field

from cloudpar_master.adapters.embedded.worker_registry import MemoryWorkerRegistry
from cloudpar_master.core.head import Head, stored
from cloudpar_master.ports import AccountRecord, BlobStore, Clock, WorkerRecord
from cloudpar_protocol.payloads import Link, TaskResult
from support.checks import hold
from support.memory.accounts import MemoryAccountStore, StoredAccounts
from support.memory.packages import MemoryPackageStore, Package
from support.memory.queue import Letter, Letters, MemoryTaskQueue

PARTS: Final = ("packages", "accounts", "queue", "registry", "blobs")
"""The ports that have data. The part of a port's data has the port's name."""


class History(Struct):
    """What one package committed, and how it ended. It stays when the package is forgotten, unlike the package.

    Attributes:
        committed: The durations of the committed results, by task.
        state, reason: How the package ended; "running" until then.
        cancelled: How many tasks were cancelled while it ran.
    """

    account_id: str
    tasks: int
    committed: dict[int, int] = {}
    state: str = "running"
    reason: str | None = None
    cancelled: int = 0


class PackageRows(Struct):
    """The package store's data. The histories are for the checks, and no master reads them."""

    rows: dict[str, Package] = {}
    numbers: int = 0
    histories: dict[str, History] = {}


class AccountRows(Struct):
    """The account store's data."""

    keys: dict[str, bytes] = {}
    accounts: dict[str, AccountRecord] = {}
    slices: dict[str, dict[int, int]] = {}
    charged: dict[str, int] = {}
    grants: list[tuple[str, str]] = []


class Messages(Struct):
    """The queue's data. `receipts`: how many receipts the queue has made."""

    looks: bool = True
    withdraws: bool = False
    there: list[Letter] = []
    sent_until: dict[str, float] = {}
    attempts: dict[str, tuple[float, list[str]]] = {}
    receipts: int = 0


class Workers(Struct):
    """The worker registry's data."""

    known: dict[str, WorkerRecord] = {}
    left: list[str] = []


class Blobs(Struct):
    """The keys of the stored results."""

    keys: list[str] = field(default_factory=list)


class Receipts:
    """Makes the receipts of messages."""

    def __init__(self, made: int) -> None:
        self.made = made

    def fresh(self) -> str:
        """Return the next receipt."""
        self.made += 1
        return f"r{self.made}"


class Results:
    """A blob store that knows which results were uploaded, and not their bytes."""

    takes_parts = False

    def __init__(self, blobs: Blobs) -> None:
        self._keys = blobs.keys

    def upload(self, key: str) -> None:
        """Store a result, as its worker does by a link."""
        if key not in self._keys:
            self._keys.append(key)
            self._keys.sort()

    def get_link(self, key: str) -> Link:
        """See the port."""
        return Link("GET", f"http://master.test/blobs/{key}")

    def exists(self, key: str, *, promise: bool = False) -> bool:
        """See the port."""
        return key in self._keys

    def delete(self, key: str) -> None:
        """See the port."""
        self._keys[:] = [
            each for each in self._keys if not (each == key or (key.endswith("/") and each.startswith(key)))
        ]

    def abandon(self, prefix: str) -> None:
        """See the port. As on AWS, where masters run beside each other, rules of the store remove the blobs later."""

    def uploads(self, account_id: str) -> Iterator[tuple[str, int]]:
        """See the port. Clients upload nothing here."""
        return iter(())

    def free_bytes(self) -> int | None:
        """See the port."""
        return None


class Packages(MemoryPackageStore):
    """The package store, with a call for the disk, which is no call of the port."""

    def damage(self, package_id: str) -> None:
        """Flip a bit of the package's head."""
        package = self._packages.get(package_id)
        if package is not None:
            package.head = package.head[:-1] + bytes([package.head[-1] ^ 1])


def is_damaged(package: Package) -> bool:
    """Return whether the head of a package cannot be read."""
    try:
        stored.decode(package.head)
    except ValueError:
        return True
    return False


def _packages(rows: PackageRows, name: str, arguments: tuple[Any, ...], clock: Clock) -> Any:
    numbers = count(rows.numbers)
    answer = getattr(Packages(rows.rows, numbers), name)(*arguments)
    rows.numbers = next(numbers)
    if name == "create" and answer is arguments[0]:
        spec, head = arguments
        rows.histories[head.billing_id] = History(spec.account_id, spec.start.n)
    if name == "save" and answer:
        _note(rows.histories, *arguments)
    return answer


def _note(histories: dict[str, History], head: Head, _: float, results: Sequence[TaskResult] = ()) -> None:
    """Note what a saved head commits."""
    hold(head.billing_id in histories, "a head is saved of a package that was never created:", head.billing_id)
    history = histories[head.billing_id]
    for result in results:
        hold(result.index not in history.committed, "task", result.index, "has two results")
        history.committed[result.index] = result.duration_us
    hold(history.state in {"running", head.life.state} or head.life.state == "expired", "it ended twice", history.state)
    if history.state == "running":
        history.state, history.reason = head.life.state, head.life.reason
        history.cancelled = sum(end - start for start, end in head.tasks.cancelled)


def _accounts(rows: AccountRows, name: str, arguments: tuple[Any, ...], clock: Clock) -> Any:
    books = StoredAccounts()
    books.keys, books.accounts, books.slices, books.charged = rows.keys, rows.accounts, rows.slices, rows.charged
    books.grants = set(rows.grants)
    answer = getattr(MemoryAccountStore(books, clock), name)(*arguments)
    rows.grants = sorted(books.grants)
    return answer


def _queue(messages: Messages, name: str, arguments: tuple[Any, ...], clock: Clock, **named: Any) -> Any:
    receipts = Receipts(messages.receipts)
    answer = getattr(MemoryTaskQueue(cast("Letters", messages), clock, receipts), name)(*arguments, **named)
    messages.receipts = receipts.made
    return answer


def _registry(workers: Workers, name: str, arguments: tuple[Any, ...], clock: Clock, **named: Any) -> Any:
    registry = MemoryWorkerRegistry()
    registry._workers = workers.known
    for worker_id in workers.left:
        registry._left[worker_id] = None
    answer = getattr(registry, name)(*arguments, **named)
    workers.known, workers.left = registry._workers, list(registry._left)
    return answer


def _blobs(blobs: Blobs, name: str, arguments: tuple[Any, ...], clock: Clock) -> Any:
    answer = getattr(cast("BlobStore", Results(blobs)), name)(*arguments)
    return list(answer) if name == "uploads" else answer


_encode = msgspec.msgpack.Encoder().encode
_KINDS: Final[Mapping[str, type[Struct]]] = {
    "packages": PackageRows, "accounts": AccountRows, "queue": Messages, "registry": Workers, "blobs": Blobs,
}  # fmt: skip
_DECODERS: Final = {part: msgspec.msgpack.Decoder(kind) for part, kind in _KINDS.items()}
_CALLS: Final[Mapping[str, Callable[..., Any]]] = {
    "packages": _packages, "accounts": _accounts, "queue": _queue, "registry": _registry, "blobs": _blobs,
}  # fmt: skip


def bytes_of(content: object) -> bytes:
    """Encode data so that equal data have equal bytes."""
    return _encode(content)


def content_of(part: str, body: bytes) -> Any:
    """Decode the data of a part."""
    return _DECODERS[part].decode(body)


def empty(part: str) -> bytes:
    """Return the data of a part of a new deployment."""
    return bytes_of(_KINDS[part]())


class PortCall(NamedTuple):
    """A call of a port that has data."""

    part: str
    name: str
    arguments: tuple[Any, ...]
    named: dict[str, Any]

    @property
    def text(self) -> str:
        """The call without its arguments."""
        return f"{self.part}.{self.name}"


def perform(call: PortCall, body: bytes, now: float) -> tuple[Any, bytes]:
    """Carry a port call out on the data of its part. Returns the answer and the new data."""
    content = content_of(call.part, body)
    clock = SimpleNamespace(now=lambda: now, date=lambda at: at)
    answer = _CALLS[call.part](content, call.name, call.arguments, clock, **call.named)
    return answer, bytes_of(content)
