import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from operator import methodcaller
from pathlib import Path

from .columns import add_missing
from .migrations import FORMAT, convert

SCHEMA = """
CREATE TABLE IF NOT EXISTS packages (
    package_id TEXT PRIMARY KEY, account_id TEXT NOT NULL, started_at REAL NOT NULL, version INTEGER NOT NULL,
    due_at REAL NOT NULL, uncut INTEGER NOT NULL, unsettled INTEGER NOT NULL, running INTEGER NOT NULL,
    tasks INTEGER NOT NULL, data_bytes INTEGER NOT NULL, head BLOB NOT NULL,
    stored_bytes INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS packages_due ON packages (due_at);
CREATE INDEX IF NOT EXISTS packages_uncut ON packages (started_at) WHERE uncut;
CREATE INDEX IF NOT EXISTS packages_account ON packages (account_id, started_at);
CREATE INDEX IF NOT EXISTS packages_unsettled ON packages (account_id, running, tasks, data_bytes)
    WHERE unsettled;
CREATE INDEX IF NOT EXISTS packages_stored ON packages (account_id, stored_bytes) WHERE stored_bytes > 0;
CREATE INDEX IF NOT EXISTS packages_started ON packages (started_at);
CREATE TABLE IF NOT EXISTS specs (package_id TEXT PRIMARY KEY, spec BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS inbox (
    id INTEGER PRIMARY KEY, package_id TEXT NOT NULL, key TEXT NOT NULL, event BLOB NOT NULL,
    UNIQUE (package_id, key)
);
CREATE INDEX IF NOT EXISTS inbox_oldest ON inbox (package_id, id);
CREATE TABLE IF NOT EXISTS pages (
    package_id TEXT NOT NULL, version INTEGER NOT NULL, results BLOB NOT NULL, PRIMARY KEY (package_id, version)
);
CREATE TABLE IF NOT EXISTS accounts (
    account_id TEXT PRIMARY KEY, name TEXT NOT NULL, token_hash TEXT NOT NULL UNIQUE, state TEXT NOT NULL,
    granted_us INTEGER NOT NULL, spent_us INTEGER NOT NULL, reserved_us INTEGER NOT NULL, created_at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS token_roles (account_id TEXT PRIMARY KEY, role TEXT NOT NULL, valid_until REAL NOT NULL);
CREATE TABLE IF NOT EXISTS offline_accounts (account_id TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS account_keys (account_id TEXT PRIMARY KEY, encrypted BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS secret_mark (id INTEGER PRIMARY KEY CHECK (id = 1), mark BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS slices (
    package_id TEXT NOT NULL, number INTEGER NOT NULL, granted_us INTEGER NOT NULL, PRIMARY KEY (package_id, number)
);
CREATE TABLE IF NOT EXISTS settlements (package_id TEXT PRIMARY KEY, charged_us INTEGER NOT NULL, at REAL NOT NULL);
CREATE INDEX IF NOT EXISTS settlements_at ON settlements (at);
CREATE TABLE IF NOT EXISTS usage (
    day TEXT NOT NULL, account_id TEXT NOT NULL, charged_us INTEGER NOT NULL, packages INTEGER NOT NULL,
    PRIMARY KEY (day, account_id)
);
CREATE TABLE IF NOT EXISTS grants (account_id TEXT NOT NULL, key TEXT NOT NULL, PRIMARY KEY (account_id, key));
CREATE TABLE IF NOT EXISTS messages (
    id INTEGER PRIMARY KEY, body TEXT NOT NULL, state TEXT NOT NULL, visible_at REAL NOT NULL,
    receives INTEGER NOT NULL DEFAULT 0, receipt TEXT, account TEXT NOT NULL DEFAULT '',
    package TEXT NOT NULL DEFAULT '', first INTEGER NOT NULL DEFAULT 0, cost_us INTEGER NOT NULL DEFAULT 1,
    python TEXT NOT NULL DEFAULT '', group_name TEXT NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS messages_group ON messages (group_name);
CREATE INDEX IF NOT EXISTS messages_lines ON messages (account, package, id) WHERE state = 'waiting';
CREATE INDEX IF NOT EXISTS messages_hidden ON messages (visible_at) WHERE state = 'hidden';
CREATE INDEX IF NOT EXISTS messages_dead ON messages (id) WHERE state = 'dead';
CREATE INDEX IF NOT EXISTS messages_receipt ON messages (receipt);
CREATE TABLE IF NOT EXISTS sent_groups (name TEXT PRIMARY KEY, until REAL NOT NULL);
CREATE TABLE IF NOT EXISTS attempts (attempt_id TEXT NOT NULL, receipt TEXT NOT NULL, until REAL NOT NULL);
CREATE INDEX IF NOT EXISTS attempts_id ON attempts (attempt_id);
CREATE TABLE IF NOT EXISTS clock (id INTEGER PRIMARY KEY CHECK (id = 1), at REAL NOT NULL, date REAL NOT NULL);
"""


class Database:
    """One SQLite connection. Each call of a port commits its changes in one transaction before the call returns.

    If the process is killed, no committed change is lost, since the kernel has the written pages then. Only a power cut
    or a crash of the kernel may lose the last seconds (synchronous = NORMAL).

    Raises:
        sqlite3.Error: The database cannot be opened, read or written, or is of a format that this release cannot read.
        OSError: The database is of an earlier format, and the conversion cannot write its copy of the database.
    """

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=10.0)
        # Without this line, one flipped bit in a text would make every query that reads the text fail. So one damaged
        # row would stop the work of all accounts.
        self._connection.text_factory = methodcaller("decode", "utf-8", "replace")
        try:
            for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "cache_size = -8000", "temp_store = MEMORY"):
                self._connection.execute(f"PRAGMA {pragma}")
            self._prepare(path)
            self._connection.executescript(SCHEMA)
        except BaseException:  # also an OSError, while a conversion copies the file
            self._connection.close()
            raise
        self.execute = self._connection.execute
        self.executemany = self._connection.executemany

    def _prepare(self, path: Path) -> None:
        (tables,) = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        self.fresh = not tables
        """Whether the database was empty, so that this process makes its tables."""
        if tables:
            convert(self._connection, path)
            add_missing(self._connection, SCHEMA)
        else:
            self._connection.execute(f"PRAGMA user_version = {FORMAT}")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the statements of a `with` block as one transaction: if the block raises, none of them takes effect."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        finally:
            # After an error SQLite may have rolled the transaction back itself; after a failed commit the transaction
            # is still open.
            if self._connection.in_transaction:
                self.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connection. SQLite then copies its write-ahead log into the database file."""
        self._connection.close()
