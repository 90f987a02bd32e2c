"""Adds columns of later releases to an existing database, and drops the indexes that these releases have changed.

A new column needs neither a new format nor a step in migrations.py if its default is right for existing rows. An
earlier release can still use the database if its statements name the columns that they write.
"""

import sqlite3
from contextlib import closing


def add_missing(connection: sqlite3.Connection, schema: str) -> None:
    """Add the columns that a database lacks, and drop the indexes that the schema defines differently.

    Afterwards the caller runs the schema, which makes the dropped indexes again. If the process dies before that, the
    next start makes them. Each new column must have a default: without a default, the existing rows would get the text
    'None'.

    Args:
        connection: The connection to the database, in autocommit mode.
        schema: The statements that make all tables and indexes.

    Raises:
        sqlite3.OperationalError: The database cannot be written.
        AssertionError: A new column has no default.
    """
    with closing(sqlite3.connect(":memory:")) as wanted:
        wanted.executescript(schema)
        for table, _ in _statements(wanted, "table"):
            there = {name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")}
            for _, name, kind, _, default, _ in wanted.execute(f"PRAGMA table_info({table})"):
                if there and name not in there:
                    if default is None:
                        raise AssertionError(f"the new column {name} of {table} needs a default for existing rows")
                    connection.execute(f"ALTER TABLE {table} ADD COLUMN {name} {kind} NOT NULL DEFAULT {default}")
        statements = dict(_statements(wanted, "index"))
    for index, statement in _statements(connection, "index"):
        if statements.get(index, statement) != statement:
            connection.execute(f"DROP INDEX {index}")


def _statements(connection: sqlite3.Connection, kind: str) -> list[tuple[str, str]]:
    """Return the name and the statement of each table or index, except those that SQLite made itself."""
    select = "SELECT name, sql FROM sqlite_master WHERE type = ? AND sql IS NOT NULL"
    return connection.execute(select, (kind,)).fetchall()
