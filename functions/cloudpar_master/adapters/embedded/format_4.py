"""Converts the database of 0.1.0 to that of 0.2.0.

Stored bytes are read and written as plain dictionaries, never with the current classes: the classes will change, but
this conversion must not.
"""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import msgspec

BLOB_BYTES = 64 * 1024
"""The conversion adds this many bytes to the stored size of each package, because the package may have blobs. If its
stored size were below `kept_bytes` of the policy, the master might not remove the blobs when the package is deleted."""

_encode = msgspec.msgpack.Encoder().encode


def convert(connection: sqlite3.Connection) -> None:
    """Convert the whole database, within the caller's transaction.

    In 0.2.0 a head names its last result page by the version alone, and a page is not stored if its writer lost the
    race for the head. Slices and settlements name a package by its id and the time of its start. A package's row has
    columns from which the master checks the limits of an account.
    """
    connection.execute("ALTER TABLE pages RENAME TO old_pages")
    connection.execute(
        "CREATE TABLE pages (package_id TEXT NOT NULL, version INTEGER NOT NULL, results BLOB NOT NULL,"
        " PRIMARY KEY (package_id, version))"
    )
    for column in ("unsettled", "running", "tasks", "data_bytes"):
        connection.execute(f"ALTER TABLE packages ADD COLUMN {column} INTEGER NOT NULL DEFAULT 0")
    with closing(connection.execute("SELECT package_id FROM packages")) as rows:
        packages = [package_id for (package_id,) in rows]
    for package_id in packages:
        _convert_package(connection, package_id)
    connection.execute("DROP TABLE old_pages")
    connection.execute("CREATE TABLE account_keys (account_id TEXT PRIMARY KEY, encrypted BLOB NOT NULL)")
    connection.execute("CREATE TABLE secret_mark (id INTEGER PRIMARY KEY CHECK (id = 1), mark BLOB NOT NULL)")


def _convert_package(connection: sqlite3.Connection, package_id: str) -> None:
    select = "SELECT head, spec FROM packages JOIN specs USING (package_id) WHERE package_id = ?"
    head, spec = map(msgspec.msgpack.decode, connection.execute(select, (package_id,)).fetchone())
    page, nonce = head["page"]
    stored_bytes = _keep_pages(connection, package_id, page, nonce)
    data_bytes = _data_bytes(spec["start"]["data"])
    head |= {"page": page, "data_bytes": data_bytes, "stored_bytes": stored_bytes + data_bytes + BLOB_BYTES}
    running = head["state"] == "running"
    connection.execute(
        "UPDATE packages SET unsettled = ?, running = ?, tasks = ?, data_bytes = ?, head = ? WHERE package_id = ?",
        (not head["settled"], running, head["tasks"], data_bytes, _encode(head), package_id),
    )
    billing_id = f"{package_id}@{round(head['started_at'] * 1000)}"
    connection.execute("UPDATE slices SET package_id = ? WHERE package_id = ?", (billing_id, package_id))
    # An older settlement belongs to an earlier package with the same id, which was deleted.
    connection.execute(
        "UPDATE settlements SET package_id = ? WHERE package_id = ? AND at >= ?",
        (billing_id, package_id, head["started_at"]),
    )


def _keep_pages(connection: sqlite3.Connection, package_id: str, version: int, nonce: str) -> int:
    """Copy the pages that can be reached from the head. The writers of all other pages lost the race for the head.

    Returns the size of the copied pages, in bytes.
    """
    select = (
        "SELECT before_version, before_nonce, results FROM old_pages WHERE package_id = ? AND version = ? AND nonce = ?"
    )
    stored_bytes = 0
    while (row := connection.execute(select, (package_id, version, nonce)).fetchone()) is not None:
        connection.execute("INSERT INTO pages VALUES (?, ?, ?)", (package_id, version, row[2]))
        stored_bytes += len(row[2])
        version, nonce = row[:2]
    return stored_bytes


def _data_bytes(data: Mapping[str, Any]) -> int:
    match data:
        case {"type": "inline", "items": items}:
            return sum(map(len, items))
        case {"type": "blob", "blob": [_, size, *_]}:
            return int(size)
    return 0
