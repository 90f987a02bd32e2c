import sqlite3
from pathlib import Path

import pytest

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
