import heapq
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from cloudpar_master.adapters.records import Records
from cloudpar_master.core.events import Event
from cloudpar_master.core.head import Head, Spec
from cloudpar_master.core.recent import Recent
from cloudpar_master.ports import AtWork, Clock, Ids, Opened, PackageStore, ResultPage, Running, Unreadable
from cloudpar_protocol.errors import TooLarge
from cloudpar_protocol.payloads import TaskResult

from . import errors
from . import result_pages as pages
from .backoff import attempts, batches
from .compression import unpack
from .objects import Objects
from .package_rows import (
    CLAIM,
    HEAD,
    INBOX_BYTES,
    LAST_EVENT,
    SHARDS,
    SPEC,
    UNCUT,
    event_key,
    event_row,
    freed_body,
    freed_row,
    head_row,
    read_events,
    read_head,
    read_running,
    spec_row,
)
from .rows import Row
from .table import MISSING, THERE, Refused, Table, check, put, remove, update

CACHED = 64
DUE_STEP_S = 60.0
"""Due times are rounded up to multiples of this many seconds: the timer looks once a minute, so exact times would only
cost writes."""

SKEW_S = 300.0
"""How many seconds the clocks of two processes may differ at most. That is far less than a day, the shortest time after
which a package id may be used again."""

OF_EARLIER = "(attribute_exists(born) AND born <> :born)"
"""The condition that a stored event belongs to an earlier package with the same id."""

FREE = f"{MISSING} OR claimed_until <= :now OR claimed_until > :latest"
"""The condition that no claim holds at the time `:now`. A claim that ends after `:latest` does not count; see `claim`
of the port."""

CONFLICT_S = 0.01
"""The longest wait, in seconds, after a conflict with another process's write to the same head: about as long as a
transaction takes."""

ROW_BYTES = 395_000
"""An event that has more bytes, when compressed, is refused: DynamoDB takes rows of at most 400 KB."""

FORGET_BATCH = 9
"""How many rows one transaction of `forget` deletes besides the head. A transaction may have at most 4 MB, and a row at
most 400 KB."""

COUNTED = 1_000
"""Only this many packages of an account, the newest ones, count towards the bytes that the account stores."""

DAY_S = 86_400


class DynamoPackageStore(PackageStore):
    """Stores packages in one table of DynamoDB, and large specs and large result pages in a bucket.

    The id of a package is the partition key of all its rows.

    Each row names a day after which AWS may remove the row. Usually the master has deleted the package long before that
    day. So AWS removes only the rows that a crash has left behind.

    Args:
        table: The packages' table.
        objects: Stores large specs and large result pages.
        clock: Tells the time, from which the store computes the day after which AWS may remove a row.
        ids: Makes a name for each save, for each claim, and for each object of a large spec. By the name the store
            recognizes its own write if botocore has sent the write twice.
        kept_s: Seconds for which a row may be needed after it was written.
        due_step_s: See DUE_STEP_S.
        skew_s: See SKEW_S.
    """

    def __init__(self, table: Table, objects: Objects, clock: Clock, ids: Ids, kept_s: float, *,
                 due_step_s: float = DUE_STEP_S, skew_s: float = SKEW_S) -> None:  # fmt: skip
        self._table = table
        self._objects = objects
        self._clock = clock
        self._ids = ids
        self._kept_s = kept_s
        self._due_step_s = due_step_s
        self._skew_us = round(skew_s * 1e6)
        self._cache = Recent[str, Spec](CACHED)
        self._born = Recent[str, int](CACHED)
        self._records = Records(unpack)
        self._arrivals = 0

    def create(self, spec: Spec, head: Head) -> Spec:
        row, body = spec_row(spec, self._ids.fresh())
        if body is not None:
            # Store the object before the row that names it, so that no worker finds a package without its spec. If this
            # process ends before the row is stored, the object stays until the package's storage is freed, or until the
            # bucket removes it.
            self._objects.put(row["object"], body)
        changes = [
            put(self._dated(head_row(head, spec.started_at, self._due_step_s)), MISSING),
            put(self._dated(row)),
        ]
        for _ in attempts():
            born = self._arrival()
            if self._table.transact(changes) is None:
                self._born[spec.package_id] = born
                return spec
            stored = self._table.get(spec.package_id, SPEC)
            if stored is not None:
                # botocore may repeat a transaction that took effect: then the stored row names this call's object.
                if body is not None and stored.get("object") != row["object"]:
                    self._objects.delete(row["object"])
                return self._records.spec(spec.package_id, freed_body(stored))
        raise errors.busy(f"package {spec.package_id}")  # an earlier package of this id is being deleted

    def spec(self, package_id: str) -> Spec | None:
        """See the port. Does not use the cache, which may have the spec of an earlier package with the same id."""
        row = self._table.get(package_id, SPEC)
        return None if row is None else self._keep(row)

    def _keep(self, row: Row) -> Spec:
        # Without its object, a spec cannot be read any more: an empty record counts as a damaged one.
        packed = row["spec"] if "spec" in row else self._objects.get(row["object"]) or b""
        spec = self._cache[row["pk"]] = self._records.spec(row["pk"], packed)
        return spec

    def load(self, package_id: str) -> Head | None:
        row = self._table.get(package_id, HEAD)
        return None if row is None else read_head(self._records, row)

    def find(self, package_ids: Sequence[str]) -> dict[str, tuple[Head, Spec | None]]:
        """See the port. Specs that are not in the cache are read with the heads.

        A cached spec may belong to an earlier package with the same id. The start times of head and spec then differ,
        and the spec is read again.
        """
        known: dict[str, Spec | None] = {each: self._cache[each] for each in package_ids if each in self._cache}
        keys = [(each, HEAD) for each in package_ids]
        rows = self._table.get_many(keys + [(each, SPEC) for each in package_ids if each not in known])
        heads = {pk: read_head(self._records, row) for (pk, sk), row in rows.items() if sk == HEAD}
        outdated = [
            each for each, spec in known.items() if spec and each in heads and heads[each].started_at != spec.started_at
        ]
        if outdated:
            rows |= self._table.get_many([(each, SPEC) for each in outdated])
        for (pk, sk), row in rows.items():
            if sk == SPEC:
                try:
                    known[pk] = self._keep(row)
                except Unreadable:
                    known[pk] = None
        return {each: (heads[each], spec) for each, spec in known.items() if each in heads}

    def heads(self, package_ids: Sequence[str]) -> list[Head]:
        keys = [(package_id, HEAD) for package_id in package_ids]
        rows = self._table.get_many(keys)
        return [read_head(self._records, rows[key]) for key in keys if key in rows]

    def open(self, package_id: str, limit: int) -> Opened | None:
        """See the port. If the inbox has over a megabyte, only the first megabyte in the order of keys is read."""
        between = {"pk": package_id, "head": HEAD, "last": LAST_EVENT}
        rows = self._table.query("pk = :pk AND sk BETWEEN :head AND :last", between)
        first = next(rows, None)
        if first is None or first["sk"] != HEAD:
            return None
        found: list[Row] = []
        room = INBOX_BYTES
        for row in rows:
            found.append(row)
            room -= len(row["event"])
            if room < 0:
                break
        own = self._own(package_id, found, first["started_at"])
        items = list(read_events(own, limit))
        return Opened(read_head(self._records, first), items, more=len(items) < len(own) or room < 0)

    def save(self, head: Head, due_at: float, results: Sequence[TaskResult] = ()) -> bool:
        """See the port. botocore may repeat a write that took effect.

        The stored row then has the name of this save, and the save counts as done.
        """
        writer, before = self._ids.fresh(), head.version - 1
        row = self._dated(head_row(head, due_at, self._due_step_s, writer=writer))
        # Without the start time, a slow process could replace the head of a later package with the same id.
        change = put(row, "version = :before AND started_at = :born", before=before, born=row["started_at"])
        page = self._dated(self._page_row(head, results, writer)) if results else {}
        for _ in attempts(longest_s=CONFLICT_S):
            try:
                if page:
                    refusals = self._table.transact([change, put(page)], patient=False)
                    refused = refusals[0] if refusals else None
                else:
                    refused = self._table.write(change, patient=False)
            except errors.Conflict:
                # Another process is writing this head and will probably win, so a long wait is useless: read the head.
                refused = Refused(self._table.get(head.package_id, HEAD))
                if refused.row is not None and refused.row["version"] == before:
                    continue
            # If botocore repeats a save that took effect, AWS refuses it, since the version is stored already. If this
            # counted as a lost race, the events would be folded again, and the effects would wait for another process.
            won = refused is None or (refused.row is not None and refused.row.get("writer") == writer)
            if not won and "object" in page:
                self._objects.delete(page["object"])
            return won
        raise errors.busy(f"package {head.package_id}")

    def _page_row(self, head: Head, results: Sequence[TaskResult], writer: str) -> Row:
        row, body = pages.page_row(head.package_id, head.version, results, writer)
        if body is not None:
            self._objects.put(row["object"], body)
        return row

    def append(self, package_id: str, items: Sequence[tuple[str, Event]], born: float | None = None) -> None:
        """See the port.

        Raises:
            TooLarge: An event is larger than a row can be.
        """
        found = [self._dated(event_row(package_id, key, event, self._arrival())) for key, event in items]
        for row in found:
            if len(row["event"]) > ROW_BYTES:
                raise TooLarge(f"{len(row['event']):,} bytes of results are too many at once: publish fewer together")
        if born is None:
            head = self._table.get(package_id, HEAD) if found else None
            if head is None:
                return
            born = head["started_at"]
        # The package may be removed before its events are stored. If the events did not name its start time, a later
        # package with the same id could consume them.
        born = round(born, 6)
        for row in found:
            self._table.write(put({**row, "born": born}, f"{MISSING} OR {OF_EARLIER}", born=born))

    def claim(self, package_id: str, now: float, until: float) -> bool:
        """See the port.

        A claim has a row of its own, because a write of this row costs one write unit, and a write of the head may cost
        hundreds of them.
        """
        writer = self._ids.fresh()
        row = self._dated({"pk": package_id, "sk": CLAIM, "claimed_until": until, "writer": writer})
        refused = self._table.write(put(row, FREE, now=now, latest=2 * until - now))
        # If botocore repeats a claim that took effect, the stored row is the one of this call.
        return refused is None or (refused.row is not None and refused.row["writer"] == writer)

    def _arrival(self) -> int:
        """Return this machine's time in microseconds; each call returns a later time than the call before.

        These times order the events of an inbox. They also show which events belong to an earlier package with the same
        id.
        """
        self._arrivals = max(self._arrivals + 1, time.time_ns() // 1000)
        return self._arrivals

    def _own(self, package_id: str, found: list[Row], started_at: float) -> list[Row]:
        """Delete the events of an earlier package with the same id. Returns the rows of all other events.

        An event names the start time of its package, unless an earlier release has stored it. For the events of earlier
        releases, a process remembers the creation times of the last CACHED packages that it created. If another process
        created the package, no event of an earlier release is deleted. Since clocks differ, an event from shortly
        before the creation may belong to this package. Such an event stays: otherwise results could be lost.
        """
        created = self._born.get(package_id, 0) - self._skew_us
        own = [row for row in found if (row["born"] == started_at if "born" in row else row["at"] >= created)]
        if len(own) < len(found):
            kept = {row["sk"] for row in own}
            self._table.delete([(row["pk"], row["sk"]) for row in found if row["sk"] not in kept])
        return own

    def delete_events(self, package_id: str, keys: Sequence[str]) -> None:
        self._table.delete([event_key(package_id, key) for key in keys])

    def pages(self, package_id: str, after: int, until: int, limit_bytes: int) -> list[ResultPage]:
        if after >= until:
            return []
        between = "pk = :pk AND sk BETWEEN :first AND :last"
        values = {"pk": package_id, "first": pages.key(after + 1), "last": pages.key(until)}
        return pages.read_pages(self._table.query(between, values), self._objects.get, limit_bytes, self._records)

    def due(self, now: float, limit: int) -> list[str]:
        condition = "due = :shard AND due_at <= :now"
        shards = [
            self._table.query(condition, {"shard": str(shard), "now": now}, index="due", limit=limit)
            for shard in range(SHARDS)
        ]
        return [row["pk"] for row in islice(heapq.merge(*shards, key=lambda row: row["due_at"]), limit)]

    def defer(self, package_id: str, now: float, until: float) -> None:
        condition = f"{THERE} AND due_at <= :now"
        self._table.write(update((package_id, HEAD), "SET due_at = :until", condition, until=until, now=now))

    def uncut(self) -> list[str]:
        """See the port. One query brings about 8,000 packages, because the index has only keys."""
        return [row["pk"] for row in self._table.query("uncut = :all", {"all": UNCUT}, index="uncut")]

    def of_account(self, account_id: str | None, limit: int) -> list[Head]:
        """See the port. To list the packages of all accounts, as operators do, the store reads the whole index."""
        if account_id is None:
            every = self._table.scan("account")
            found = heapq.nlargest(limit, every, key=lambda row: row["started_at"])
        else:
            values = {"id": account_id}
            newest = self._table.query("account = :id", values, index="account", limit=limit, descending=True)
            found = list(newest)
        return self._heads(found)

    def running(self, account_id: str) -> Running:
        """See the port.

        The index also has packages that have ended but are not settled yet; such packages do not count.
        """
        return read_running(self._unsettled(account_id))

    def stored_bytes(self, account_id: str) -> int:
        """See the port. Reads the newest COUNTED heads. An index would cost a further write for each result page."""
        return sum(head.counted_bytes for head in self.of_account(account_id, COUNTED))

    def running_heads(self, account_id: str) -> list[Head]:
        """See the port. Rows of packages that have ended are ignored, as in `running`."""
        running = [row for row in self._unsettled(account_id) if "tasks" in row]
        return [head for head in self._heads(running) if not head.life.ended]

    def unsettled(self, account_id: str) -> list[Head]:
        return [head for head in self._heads(self._unsettled(account_id)) if not head.life.settled]

    def at_work(self, limit: int) -> AtWork:
        """See the port. Rows of packages that have ended are ignored, as in `running`."""
        found = [row for row in self._table.scan("unsettled") if "tasks" in row]
        before = Counter[str]()
        turns: list[tuple[int, Row]] = []
        for row in sorted(found, key=lambda row: row["started_at"]):
            turns.append((before[row["unsettled"]], row))
            before[row["unsettled"]] += 1
        first = [row for _, row in heapq.nsmallest(limit, turns, key=lambda turn: turn[0])]
        return AtWork([head for head in self._heads(first) if not head.life.ended], len(found) - len(first))

    def _unsettled(self, account_id: str) -> Iterator[Row]:
        return self._table.query("unsettled = :id", {"id": account_id}, index="unsettled")

    def _heads(self, found: Iterable[Row]) -> list[Head]:
        """Read the heads of the packages in these rows of an index, in this order. The rows may be out of date."""
        return self.heads([row["pk"] for row in found])

    def delete_pages(self, package_id: str) -> bool:
        found = self._table.query(
            "pk = :pk AND begins_with(sk, :page)", {"pk": package_id, "page": pages.PAGE}, keys_only=True
        )
        self._table.delete([(row["pk"], row["sk"]) for row in found])
        row = self._table.get(package_id, SPEC)
        try:
            # The object of a large spec is deleted already, with the results.
            spec = None if row is None else self._records.spec(package_id, freed_body(row))
        except Unreadable:
            spec = None
        self._cache.pop(package_id, None)
        if spec is not None:
            # Without the check, a slow process could replace the spec of a later package with the same id.
            at_head = check((package_id, HEAD), "started_at = :born", born=round(spec.started_at, 6))
            self._table.transact([at_head, put(self._dated(freed_row(spec)), THERE)])
        return True

    def forget(self, head: Head) -> bool:
        """See the port.

        The head is deleted last: if a crash comes before, the timer finds the head and deletes the rest.

        Each transaction checks the head. Without the check, a slow process could delete the rows of a later package
        with the same id, after another process has deleted this package.
        """
        self._cache.pop(head.package_id, None)
        key, this = (head.package_id, HEAD), "version = :version AND started_at = :born"
        values = {"version": head.version, "born": round(head.started_at, 6)}
        found = list(self._table.query("pk = :pk", {"pk": head.package_id}, keys_only=True))
        others = [(row["pk"], row["sk"]) for row in found if row["sk"] != HEAD]
        # Without the empty list, the head of a package without other rows would stay.
        parts = [list(part) for part in batches(others, FORGET_BATCH)] or [[]]
        for part in parts:
            at_head = remove(key, this, **values) if part is parts[-1] else check(key, this, **values)
            if self._table.transact([at_head, *map(remove, part)]) is not None:
                return False
        # The objects of a package that stored little are still there. Delete them after the rows: only now is it
        # certain that they do not belong to a later package with the same id. If this process dies before, the bucket's
        # lifecycle rules remove them.
        for row in found:
            if "object" in row:
                self._objects.delete(row["object"])
        return True

    def _dated(self, row: Row) -> Row:
        """Add the day after which AWS may remove the row."""
        return {**row, "expires_at": int((self._clock.now() + self._kept_s) // DAY_S + 1) * DAY_S}
