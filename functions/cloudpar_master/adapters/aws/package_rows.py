"""How a package lies in its table: one head, one spec, and a row for each event. Pages are in result_pages.py."""

import hashlib
import zlib
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from cloudpar_master.core.events import Event
from cloudpar_master.core.head import Head, Spec, stored
from cloudpar_master.ports import RUNNING_FIGURES, InboxItem, Running

from .compression import compress, pack, unpack
from .rows import Row

HEAD, SPEC, EVENT = "head", "spec", "i#"
LAST_EVENT = "i$"
"""The sort keys from HEAD to this are those of the head and its inbox, and no others: one query reads both."""

SHARDS = 4
"""Of the registry of what is due: one partition takes 1,000 writes a second."""

UNCUT = "0"

KEY_BYTES = 1000
"""A sort key has 1,024 bytes at most; a longer key is addressed by its hash."""

INBOX_BYTES = 1_000_000

_specs = msgspec.msgpack.Decoder(Spec)
_events: msgspec.msgpack.Decoder[Event] = msgspec.msgpack.Decoder(Event)


def head_row(head: Head, due_at: float, step_s: float, **more: str | int) -> Row:
    """A head, with what the sparse indexes need.

    `due` names a shard of the registry; `due_at` is rounded up to whole steps, so that a busy package changes its
    place there once a step at most. `uncut` is there only while tasks are in no chunk, `unsettled` until it
    is, with figures of what runs until it has ended: that index is written three times in its life.
    """
    started_at = round(head.started_at, 6)
    row: Row = {
        "pk": head.package_id,
        "sk": HEAD,
        "version": head.version,
        "head": compress(stored.encode(head)),
        "account": head.account_id or None,
        "started_at": started_at,
        "due": str(shard(head.package_id)),
        "due_at": int(-(-due_at // step_s) * step_s),
        **more,
    }
    if head.uncut > 0:
        row |= {"uncut": UNCUT, "uncut_since": started_at}
    if not head.life.settled:
        row |= {"unsettled": head.account_id or None}
    if not head.life.ended:
        row |= Running.of(head).figures
    return row


def read_running(found: Iterable[Row]) -> Running:
    """What runs, by rows of the index of what is unsettled: only what runs has figures."""
    running = [row for row in found if "tasks" in row]
    sums = (sum(int(row.get(name, 0)) for row in running) for name in RUNNING_FIGURES)
    return Running(len(running), *sums)


def shard(package_id: str) -> int:
    """Where in the registry a package is."""
    return zlib.crc32(package_id.encode()) % SHARDS


def read_head(row: Row) -> Head:
    """The head in a row."""
    return stored.decode(unpack(row["head"]))


def spec_row(spec: Spec) -> Row:
    """A spec."""
    return {"pk": spec.package_id, "sk": SPEC, "spec": pack(spec)}


def read_spec(row: Row) -> Spec:
    """The spec in a row."""
    return _specs.decode(unpack(row["spec"]))


def event_key(package_id: str, key: str) -> tuple[str, str]:
    """Where an event is."""
    if len(key.encode()) > KEY_BYTES:
        key = "#" + hashlib.sha256(key.encode()).hexdigest()
    return package_id, EVENT + key


def event_row(package_id: str, key: str, event: Event, at: int) -> Row:
    """An event; `at` puts the inbox in order."""
    pk, sk = event_key(package_id, key)
    return {"pk": pk, "sk": sk, "event": pack(event), "at": at, "key": None if sk == EVENT + key else key}


def read_events(found: Sequence[Row], limit: int) -> Iterator[InboxItem]:
    """The oldest of these events, at most `limit` and about INBOX_BYTES."""
    room = INBOX_BYTES
    for number, row in enumerate(sorted(found, key=lambda row: (row["at"], row["sk"]))[:limit]):
        body = _unpacked(row["event"])
        room -= len(body)
        if number and room < 0:
            return
        yield InboxItem(row.get("key") or row["sk"].removeprefix(EVENT), _readable(body))


def _unpacked(body: bytes) -> bytes:
    try:
        return unpack(body)
    except ValueError:
        return b""


def _readable(body: bytes) -> Event | None:
    try:
        return _events.decode(body)
    except msgspec.DecodeError:
        return None
