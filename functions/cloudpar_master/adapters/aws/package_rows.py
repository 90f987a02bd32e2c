"""How a package is stored in its table: one head, one spec, and a row for each event. Pages are in result_pages.py."""

import hashlib
import zlib
from collections.abc import Iterable, Iterator, Sequence

from cloudpar_master.adapters.records import HeadRow, Records
from cloudpar_master.core.events import Event
from cloudpar_master.core.head import Head, Spec, stored
from cloudpar_master.ports import RUNNING_FIGURES, InboxItem, Running

from .compression import compress, pack, unpack
from .rows import Row

HEAD, SPEC, EVENT, CLAIM = "head", "spec", "i#", "claim"
LAST_EVENT = "i$"
"""Only the head and the events of its inbox have sort keys from HEAD to LAST_EVENT, so that one query reads both."""

SPEC_BYTES = 8_000
"""If a compressed spec has more bytes, it is stored as an object in the bucket, since AWS charges for each kilobyte of
a row: a row with the largest inline task data would cost 0.0007 USD until it is deleted. A smaller spec stays in its
row, because an object takes a further request when the package starts, and when a worker leases the package's first
chunk."""

SHARDS = 4
"""How many partitions the index of due packages has. DynamoDB accepts 1,000 writes a second in each."""

UNCUT = "0"
"""The partition key of all rows in the index of packages whose head is `cuttable`."""

KEY_BYTES = 1000
"""An event with a longer key is stored under the key's hash, since a sort key has 1,024 bytes at most."""

INBOX_BYTES = 1_000_000
"""About how many bytes of events one fold reads at most."""


def head_row(head: Head, due_at: float, step_s: float, **more: str | int) -> Row:
    """Make the row of a head, with the attributes that DynamoDB's sparse indexes need.

    `due` names a shard of the index of due packages. `due_at` is rounded up to a multiple of `step_s`, so that most
    saves of a busy package do not change this index. The row has `uncut` only while the head is `cuttable`. The row has
    `unsettled` until the package is settled, and the numbers of `Running` until the package has ended. Therefore
    DynamoDB writes the index of unsettled packages at most three times for each package: when the package starts, ends
    and is settled.
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
    if head.cuttable:
        row |= {"uncut": UNCUT, "uncut_since": started_at}
    if not head.life.settled:
        row |= {"unsettled": head.account_id or None}
    if not head.life.ended:
        row |= Running.of(head).figures
    return row


def read_running(found: Iterable[Row]) -> Running:
    """Return the totals over an account's running packages, from its rows in the index of unsettled packages.

    A row without the attribute `tasks` is of a package that has ended, and is ignored.
    """
    running = [row for row in found if "tasks" in row]
    sums = (sum(int(row.get(name, 0)) for row in running) for name in RUNNING_FIGURES)
    return Running(len(running), *sums)


def shard(package_id: str) -> int:
    """Return the shard of the index of due packages to which a package belongs."""
    return zlib.crc32(package_id.encode()) % SHARDS


def read_head(records: Records, row: Row) -> Head:
    """Read the head in a row."""
    at = row["pk"], row.get("account", ""), float(row["started_at"]), row["version"]
    return records.head(HeadRow(*at, row["head"]))


def spec_row(spec: Spec, writer: str) -> tuple[Row, bytes | None]:
    """Make the row of a spec.

    If the spec is too large for its row, the row names an object, and the second value is the object's content
    (otherwise None). The row then has only `Spec.freed`, which is what stays of a spec when the package's storage is
    freed. Each writer gives its object a name of its own. Otherwise a start for a package that exists already would
    replace the existing package's object before this start is refused.
    """
    row, body = {"pk": spec.package_id, "sk": SPEC}, pack(spec)
    if len(body) <= SPEC_BYTES:
        return {**row, "spec": body}, None
    # A master of release 0.3.0 finds no attribute `spec` and fails, instead of giving a worker no task data.
    return {**row, "freed": pack(spec.freed()), "object": f"results/{spec.package_id}/spec#{writer}"}, body


def freed_row(spec: Spec) -> Row:
    """Make the row of a spec whose package's storage is freed."""
    return {"pk": spec.package_id, "sk": SPEC, "spec": pack(spec.freed())}


def freed_body(row: Row) -> bytes:
    """Return the spec in a row, without reading an object: a whole spec, or `Spec.freed`."""
    body: bytes = row["spec"] if "spec" in row else row["freed"]
    return body


def event_key(package_id: str, key: str) -> tuple[str, str]:
    """Return the key of an event's row."""
    if len(key.encode()) > KEY_BYTES:
        key = "#" + hashlib.sha256(key.encode()).hexdigest()
    return package_id, EVENT + key


def event_row(package_id: str, key: str, event: Event, at: int) -> Row:
    """Make the row of an event.

    `at` is the time when the event was stored; the events of an inbox are ordered by it.
    """
    pk, sk = event_key(package_id, key)
    return {"pk": pk, "sk": sk, "event": pack(event), "at": at, "key": None if sk == EVENT + key else key}


def read_events(found: Sequence[Row], limit: int) -> Iterator[InboxItem]:
    """Yield the oldest of these events: at most `limit` events, and about INBOX_BYTES bytes."""
    room = INBOX_BYTES
    for number, row in enumerate(sorted(found, key=lambda row: (row["at"], row["sk"]))[:limit]):
        body = _unpacked(row["event"])
        room -= len(body)
        if number and room < 0:
            return
        yield InboxItem.of(row.get("key") or row["sk"].removeprefix(EVENT), body)


def _unpacked(body: bytes) -> bytes:
    try:
        return unpack(body)
    except ValueError:
        return b""
