from collections.abc import Callable, Iterator, Sequence

import msgspec

from cloudpar_master.adapters.records import HeadRow, Records
from cloudpar_master.core.events import Event
from cloudpar_master.core.head import Head, Spec, stored
from cloudpar_master.core.recent import Recent
from cloudpar_master.ports import (
    RUNNING_FIGURES,
    AtWork,
    InboxItem,
    Opened,
    PackageStore,
    ResultPage,
    Running,
    Unreadable,
)
from cloudpar_protocol.payloads import TaskResult

from .database import Database

INBOX_BYTES = 1_000_000
CACHED_SPECS = 64
CLAIMS = 1_000
"""For how many packages the last claim is remembered. A forgotten claim counts as ended."""

RESULT_BYTES = 1536
"""When pages are read up to a limit of bytes, a page counts as at least this many bytes for each of its results.
Otherwise one answer could hold 76,000 empty results, and the master's one thread would serve no other account for half
a second. With this number, reading an answer takes a few milliseconds."""

DELETED_BYTES = 8 * 1024**2
"""About how many bytes of result pages one call removes. The removal of gigabytes in one transaction would take
seconds, in which the master's one thread serves no request."""

PAGE_BYTES = 4 * 1024
"""Towards DELETED_BYTES, each result page counts as this many bytes more than it has, because the removal of a small
page takes time, too."""

_encode = msgspec.msgpack.Encoder().encode
_HEAD = ", ".join(HeadRow._fields)


class SqlitePackageStore(PackageStore):
    """Packages in SQLite. One index finds the packages that are due, and another index finds those that are `cuttable`.

    Args:
        database: Stores the packages.
        saved: Called with the package id each time that `save` has replaced a head.
        started: Called with the blob key of the task code of each new package, if its code is in a blob.
    """

    def __init__(
        self,
        database: Database,
        saved: Callable[[str], None] = lambda _package_id: None,
        started: Callable[[str], None] = lambda _code_key: None,
    ) -> None:
        self._db = database
        self._saved = saved
        self._started = started
        self._cache = Recent[str, Spec](CACHED_SPECS)
        self._claims = Recent[str, float](CLAIMS)
        self._records = Records()

    def create(self, spec: Spec, head: Head) -> Spec:
        row = {
            "package_id": spec.package_id, "account_id": spec.account_id, "started_at": spec.started_at,
            "version": head.version, "due_at": spec.started_at, "uncut": head.cuttable,
            "unsettled": not head.life.settled, "running": not head.life.ended, "head": stored.encode(head),
            "stored_bytes": head.counted_bytes,
        }  # fmt: skip
        row |= Running.of(head).figures
        places = ", ".join(f":{name}" for name in row)
        with self._db.transaction():
            done = self._db.execute(
                f"INSERT OR IGNORE INTO packages ({', '.join(row)}) VALUES ({places})", row
            ).rowcount
            if done:
                self._db.execute("INSERT INTO specs VALUES (?, ?)", (spec.package_id, _encode(spec)))
        if done and spec.start.code.blob is not None:
            self._started(spec.start.code.blob.key)
        return spec if done else self.spec(spec.package_id) or spec

    def spec(self, package_id: str) -> Spec | None:
        cached = self._cache.get(package_id)
        # The cache may have the spec of an earlier package with the same id, which another process has removed.
        if cached is not None and self._started_at(package_id) == cached.started_at:
            self._cache.move_to_end(package_id)
            return cached
        row = self._db.execute("SELECT spec FROM specs WHERE package_id = ?", (package_id,)).fetchone()
        if row is None:
            return None
        spec = self._cache[package_id] = self._records.spec(package_id, row[0])
        return spec

    def _started_at(self, package_id: str) -> float | None:
        row = self._db.execute("SELECT started_at FROM packages WHERE package_id = ?", (package_id,)).fetchone()
        return None if row is None else row[0]

    def load(self, package_id: str) -> Head | None:
        row = self._db.execute(f"SELECT {_HEAD} FROM packages WHERE package_id = ?", (package_id,)).fetchone()
        return None if row is None else self._records.head(HeadRow(*row))

    def find(self, package_ids: Sequence[str]) -> dict[str, tuple[Head, Spec | None]]:
        found: dict[str, tuple[Head, Spec | None]] = {}
        for package_id in dict.fromkeys(package_ids):
            head = self.load(package_id)
            if head is None:
                continue
            try:
                spec = self.spec(package_id)
            except Unreadable:
                found[package_id] = head, None
            else:
                if spec:
                    found[package_id] = head, spec
        return found

    def heads(self, package_ids: Sequence[str]) -> list[Head]:
        return [head for head in map(self.load, package_ids) if head]

    def open(self, package_id: str, limit: int) -> Opened | None:
        head = self.load(package_id)
        if head is None:
            return None
        items: list[InboxItem] = []
        room = INBOX_BYTES
        select = "SELECT key, event FROM inbox WHERE package_id = ? ORDER BY id LIMIT ?"
        for key, body in self._db.execute(select, (package_id, limit + 1)):
            room -= len(body)
            if len(items) == limit or (items and room < 0):
                return Opened(head, items, more=True)
            items.append(InboxItem.of(key, body))
        return Opened(head, items, more=False)

    def save(self, head: Head, due_at: float, results: Sequence[TaskResult] = ()) -> bool:
        if not results:
            saved = self._replace(head, due_at)
        else:
            with self._db.transaction():
                saved = self._replace(head, due_at)
                if saved:
                    row = (head.package_id, head.version, _encode(results))
                    self._db.execute("INSERT INTO pages VALUES (?, ?, ?)", row)
        if saved:
            self._saved(head.package_id)
        return saved

    def _replace(self, head: Head, due_at: float) -> bool:
        body = stored.encode(head)
        row = (
            head.version, body, due_at, head.cuttable, not head.life.settled, not head.life.ended,
            head.counted_bytes, head.package_id, head.version - 1, head.started_at,
        )  # fmt: skip
        # The version decides the race: without it, two processes would each save a fold of the same head, and the
        # results of one of them would be lost. Without the start time, a slow process could replace the head of a later
        # package with the same id.
        update = (
            "UPDATE packages SET version = ?, head = ?, due_at = ?, uncut = ?, unsettled = ?, running = ?,"
            " stored_bytes = ? WHERE package_id = ? AND version = ? AND started_at = ?"
        )
        saved = self._db.execute(update, row).rowcount == 1
        if saved:
            self._records.remember(body, head)
        return saved

    def append(self, package_id: str, items: Sequence[tuple[str, Event]], born: float | None = None) -> None:
        del born
        rows = [(key, _encode(event), package_id) for key, event in items]
        insert = (
            "INSERT OR IGNORE INTO inbox (package_id, key, event)"
            " SELECT package_id, ?, ? FROM packages WHERE package_id = ?"
        )
        with self._db.transaction():
            self._db.executemany(insert, rows)

    def claim(self, package_id: str, now: float, until: float) -> bool:
        """See the port. Claims are only in this process's memory, since no other one uses the database."""
        if now < self._claims.get(package_id, 0.0) <= 2 * until - now:
            return False
        self._claims[package_id] = until
        return True

    def delete_events(self, package_id: str, keys: Sequence[str]) -> None:
        with self._db.transaction():
            self._db.executemany(
                "DELETE FROM inbox WHERE package_id = ? AND key = ?", [(package_id, key) for key in keys]
            )

    def pages(self, package_id: str, after: int, until: int, limit_bytes: int) -> list[ResultPage]:
        pages: list[ResultPage] = []
        room = limit_bytes
        select = (
            "SELECT version, results FROM pages WHERE package_id = ? AND version > ? AND version <= ? ORDER BY version"
        )
        for version, body in self._db.execute(select, (package_id, after, until)):
            try:
                size, results = self._records.results(package_id, version, body)
            except Unreadable:
                if pages:
                    break
                raise
            room -= max(size, len(results) * RESULT_BYTES)
            if pages and room < 0:
                break
            pages.append(ResultPage(version, results))
        return pages

    def due(self, now: float, limit: int) -> list[str]:
        select = "SELECT package_id FROM packages WHERE due_at <= ? ORDER BY due_at LIMIT ?"
        return [package_id for (package_id,) in self._db.execute(select, (now, limit))]

    def defer(self, package_id: str, now: float, until: float) -> None:
        update = "UPDATE packages SET due_at = ? WHERE package_id = ? AND due_at <= ?"
        self._db.execute(update, (until, package_id, now))

    def uncut(self) -> list[str]:
        select = "SELECT package_id FROM packages WHERE uncut ORDER BY started_at"
        return [package_id for (package_id,) in self._db.execute(select)]

    def of_account(self, account_id: str | None, limit: int) -> Iterator[Head]:
        where, values = ("", ()) if account_id is None else ("WHERE account_id = ?", (account_id,))
        select = f"SELECT {_HEAD} FROM packages {where} ORDER BY started_at DESC LIMIT ?"
        rows = self._db.execute(select, (*values, limit)).fetchall()
        return (self._records.head(HeadRow(*row)) for row in rows)

    def running(self, account_id: str) -> Running:
        """See the port. The query reads only an index."""
        sums = ", ".join(f"coalesce(sum({name}), 0)" for name in RUNNING_FIGURES)
        select = f"SELECT count(*), {sums} FROM packages WHERE account_id = ? AND unsettled AND running = 1"
        return Running(*self._db.execute(select, (account_id,)).fetchone())

    def stored_bytes(self, account_id: str) -> int:
        """See the port. The query reads only an index. A package that an earlier release saved last counts as 0."""
        # `stored_bytes > 0` is the condition of the index: without it, SQLite would read the whole rows.
        select = "SELECT coalesce(sum(stored_bytes), 0) FROM packages WHERE account_id = ? AND stored_bytes > 0"
        total: int = self._db.execute(select, (account_id,)).fetchone()[0]
        return total

    def running_heads(self, account_id: str) -> Iterator[Head]:
        """See the port. The query finds the rows by the index of unsettled packages, and reads no others."""
        select = f"SELECT {_HEAD} FROM packages WHERE account_id = ? AND unsettled AND running = 1"
        rows = self._db.execute(select, (account_id,)).fetchall()
        # A head that cannot be read is replaced by the head of a failed package, whatever the row says.
        return (head for row in rows if not (head := self._records.head(HeadRow(*row))).life.ended)

    def unsettled(self, account_id: str) -> Iterator[Head]:
        rows = self._db.execute(f"SELECT {_HEAD} FROM packages WHERE account_id = ? AND unsettled", (account_id,))
        return (self._records.head(HeadRow(*row)) for row in rows.fetchall())

    def at_work(self, limit: int) -> AtWork:
        """See the port. Reads the index of unsettled packages."""
        every = "FROM packages WHERE unsettled AND running = 1"
        count: int = self._db.execute(f"SELECT count(*) {every}").fetchone()[0]
        # Because of the plus signs, SQLite sorts the few running packages. Otherwise it would read all packages in the
        # order of an index.
        turn = "row_number() OVER (PARTITION BY +account_id ORDER BY +started_at)"
        # The heads are read last: they may be large, and the sort needs none of them.
        select = (
            f"SELECT {_HEAD} FROM (SELECT rowid AS number, {turn} AS turn {every} ORDER BY turn, started_at LIMIT ?)"
            " JOIN packages ON packages.rowid = number ORDER BY turn, started_at"
        )
        heads = [self._records.head(HeadRow(*row)) for row in self._db.execute(select, (limit,))]
        return AtWork(heads, count - len(heads))

    def delete_pages(self, package_id: str) -> bool:
        """See the port. One call removes about DELETED_BYTES."""
        room = DELETED_BYTES
        select = "SELECT version, length(results) FROM pages WHERE package_id = ? ORDER BY version"
        for last, size in self._db.execute(select, (package_id,)):
            room -= size + PAGE_BYTES
            if room <= 0:
                self._db.execute("DELETE FROM pages WHERE package_id = ? AND version <= ?", (package_id, last))
                return False
        try:
            spec = self.spec(package_id)
        except Unreadable:
            spec = None
        self._cache.pop(package_id, None)
        with self._db.transaction():
            self._db.execute("DELETE FROM pages WHERE package_id = ?", (package_id,))
            if spec is not None:
                row = (_encode(spec.freed()), package_id)
                self._db.execute("UPDATE specs SET spec = ? WHERE package_id = ?", row)
        return True

    def forget(self, head: Head) -> bool:
        self._cache.pop(head.package_id, None)
        delete = "DELETE FROM packages WHERE package_id = ? AND version = ? AND started_at = ?"
        with self._db.transaction():
            if self._db.execute(delete, (head.package_id, head.version, head.started_at)).rowcount == 0:
                return False
            for table in ("pages", "inbox", "specs"):
                self._db.execute(f"DELETE FROM {table} WHERE package_id = ?", (head.package_id,))
            # The row of the settlement prevents a second charge, and nothing charges a forgotten package. Without this
            # line, such rows would pile up for weeks, since no limit of an account counts them.
            self._db.execute("DELETE FROM settlements WHERE package_id = ?", (head.billing_id,))
        return True


def code_in_use(database: Database) -> Iterator[str | None]:
    """Yield the blob key of the task code of each running package; None for a package whose code is no blob.

    An ended package hands out no tasks. Specs may be large, so each spec is read when the caller requests the next key.
    Packages that start or end meanwhile may be missing.
    """
    records = Records()
    running = database.execute("SELECT package_id FROM packages WHERE unsettled AND running").fetchall()
    for (package_id,) in running:
        row = database.execute("SELECT spec FROM specs WHERE package_id = ?", (package_id,)).fetchone()
        try:
            blob = None if row is None else records.spec(package_id, row[0]).start.code.blob
        except Unreadable:
            blob = None
        yield None if blob is None else blob.key
