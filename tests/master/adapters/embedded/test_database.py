import errno
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cloudpar_master.adapters.embedded.columns import add_missing
from cloudpar_master.adapters.embedded.database import Database

INSERT = "INSERT INTO grants VALUES ('a', ?)"


def keys(database: Database) -> list[str]:
    return [key for (key,) in database.execute("SELECT key FROM grants ORDER BY key")]


def test_a_transaction_is_committed_whole_or_not_at_all(database: Database) -> None:
    def fail() -> None:
        with database.transaction():
            database.execute(INSERT, ("1",))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert keys(database) == []
    with database.transaction():
        database.execute(INSERT, ("1",))
        database.execute(INSERT, ("2",))
    assert keys(database) == ["1", "2"]


def test_a_return_within_a_transaction_commits_it(database: Database) -> None:
    def work() -> str:
        with database.transaction():
            database.execute(INSERT, ("1",))
            return "left"

    assert work() == "left"
    with database.transaction():
        pass
    assert keys(database) == ["1"]


def test_a_full_disk_loses_only_its_transaction(database: Database) -> None:
    """SQLite may end it at a statement, or only at the commit: the next transaction must start in both cases."""
    (pages,) = database.execute("PRAGMA page_count").fetchone()
    database.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(sqlite3.OperationalError, match="full"), database.transaction():
        database.executemany(INSERT, ((f"{number:09}",) for number in range(100_000)))
    assert keys(database) == []
    database.execute("PRAGMA max_page_count = 1000000")
    with database.transaction():
        database.execute(INSERT, ("1",))
    assert keys(database) == ["1"]


def test_a_commit_that_fails_leaves_no_transaction_open(database: Database) -> None:
    database.execute("CREATE TABLE parents (id INTEGER PRIMARY KEY)")
    database.execute("CREATE TABLE children (id REFERENCES parents DEFERRABLE INITIALLY DEFERRED)")
    database.execute("PRAGMA foreign_keys = ON")
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"), database.transaction():
        database.execute("INSERT INTO children VALUES (1)")
    with database.transaction():
        database.execute(INSERT, ("1",))
    assert keys(database) == ["1"]


def test_a_database_opens_again_after_its_process_died(tmp_path: Path, database: Database) -> None:
    """Its process has closed nothing: what it committed is in the log beside the file."""
    with database.transaction():
        database.execute(INSERT, ("1",))
    other = Database(tmp_path / "master.sqlite")
    assert keys(other) == ["1"]
    other.close()


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "broken.sqlite"
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(sqlite3.DatabaseError, match="not a database"):
        Database(path)


def test_a_database_that_cannot_be_converted_is_closed(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.close()
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def remember(*arguments: Any, **options: Any) -> sqlite3.Connection:
        opened.append(connect(*arguments, **options))
        return opened[-1]

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sqlite3, "connect", remember)
    monkeypatch.setattr("cloudpar_master.adapters.embedded.database.convert", full)
    with pytest.raises(OSError, match="No space"):
        Database(tmp_path / "master.sqlite")
    (connection,) = opened
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


def test_a_new_column_needs_a_default() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE things (id TEXT NOT NULL)")
        add_missing(connection, "CREATE TABLE things (id TEXT NOT NULL, size INTEGER NOT NULL DEFAULT 7)")
        with pytest.raises(AssertionError, match="the new column kind of things needs a default"):
            add_missing(connection, "CREATE TABLE things (id TEXT NOT NULL, kind TEXT NOT NULL)")
        assert [name for _, name, *_ in connection.execute("PRAGMA table_info(things)")] == ["id", "size"]
