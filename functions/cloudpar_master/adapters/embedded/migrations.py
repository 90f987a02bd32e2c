"""Converts the database of an earlier release to today's format: all of it in one transaction, or nothing.

A step reads and writes stored bytes as plain dictionaries, never by today's classes: those change, and a step must not.
"""

import logging
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

FORMAT = 4
"""Raised, together with a step in `STEPS`, when the tables or the stored heads are not read as before."""

RELEASES = {0: "0.1.0", 4: "0.2.0"}
"""The release that first wrote each format. The formats between these were never released."""

BLOB_BYTES = 64 * 1024
"""Added to the stored size of a converted package, so that its blobs are always looked for when it is deleted."""

Step = Callable[[sqlite3.Connection], None]

_log = logging.getLogger(__name__)
_encode = msgspec.msgpack.Encoder().encode


class FormatError(sqlite3.DatabaseError):
    """The database is of a format that this release cannot read; the text names what to do."""


class _Page(NamedTuple):
    """Where a result page of format 0 is found."""

    version: int
    nonce: str


def convert(connection: sqlite3.Connection, path: Path) -> None:
    """Bring a database to today's format; the earlier one is kept beside it, for a return to the earlier release.

    A process that dies in here leaves the database as it was, and the next start converts it again.

    Args:
        connection: In autocommit mode; no other process writes to the database.
        path: The database's file.

    Raises:
        FormatError: The database is a later release's, or an unreleased one's.
        sqlite3.Error: The disk is full, or the database is damaged. Nothing was changed.
    """
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if found == FORMAT:
        return
    steps = _steps(found)
    kept = path.with_name(f"{path.name}.format-{found}")
    _keep(connection, kept)
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in steps:
            step(connection)
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    _log.warning(
        "converted %s of release %s to format %d; its copy %s is needed only to return to that release: delete it when "
        "this release works for you",
        path, RELEASES[found], FORMAT, kept.name,
    )  # fmt: skip


def _steps(found: int) -> list[Step]:
    if found > FORMAT:
        raise FormatError(
            f"its format is {found}, and this release of Cloud Parallelizer reads formats up to {FORMAT}: a later "
            "release made it, so start that release or a later one, or choose another folder for this one"
        )
    steps: list[Step] = []
    while found < FORMAT:
        if found not in STEPS:
            raise FormatError(
                f"its format is {found}, which no release of Cloud Parallelizer wrote: let the unreleased version that "
                "made it finish its packages, and choose another folder for this one"
            )
        found, step = STEPS[found]
        steps.append(step)
    return steps


def _keep(connection: sqlite3.Connection, kept: Path) -> None:
    """Copy the database as it is. The copy gets its name only when it is whole."""
    partial = kept.with_name(f"{kept.name}.partial")
    partial.unlink(missing_ok=True)
    connection.execute("VACUUM INTO ?", (str(partial),))
    partial.replace(kept)


def _from_0_1_0(connection: sqlite3.Connection) -> None:
    """To format 4, of 0.2.0.

    Heads name their last result page by its version alone, and the pages that lost a race are gone. Accounts know a
    package by its id and the time of its start. A package's row has columns that limits of an account are read from.
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
    page = _Page(*head["page"])
    stored_bytes = _keep_pages(connection, package_id, page)
    data_bytes = _data_bytes(spec["start"]["data"])
    head |= {"page": page.version, "data_bytes": data_bytes, "stored_bytes": stored_bytes + data_bytes + BLOB_BYTES}
    running = head["state"] == "running"
    connection.execute(
        "UPDATE packages SET unsettled = ?, running = ?, tasks = ?, data_bytes = ?, head = ? WHERE package_id = ?",
        (not head["settled"], running, head["tasks"], data_bytes, _encode(head), package_id),
    )
    billing_id = f"{package_id}@{round(head['started_at'] * 1000)}"
    connection.execute("UPDATE slices SET package_id = ? WHERE package_id = ?", (billing_id, package_id))
    # An older settlement is that of an earlier package with the same id, which is forgotten.
    connection.execute(
        "UPDATE settlements SET package_id = ? WHERE package_id = ? AND at >= ?",
        (billing_id, package_id, head["started_at"]),
    )


def _keep_pages(connection: sqlite3.Connection, package_id: str, page: _Page) -> int:
    """Keep the pages that the head leads to; the others lost a race. Returns how many bytes they have."""
    select = (
        "SELECT before_version, before_nonce, results FROM old_pages WHERE package_id = ? AND version = ? AND nonce = ?"
    )
    stored_bytes = 0
    while (row := connection.execute(select, (package_id, *page)).fetchone()) is not None:
        connection.execute("INSERT INTO pages VALUES (?, ?, ?)", (package_id, page.version, row[2]))
        stored_bytes += len(row[2])
        page = _Page(*row[:2])
    return stored_bytes


def _data_bytes(data: Mapping[str, Any]) -> int:
    match data:
        case {"type": "inline", "items": items}:
            return sum(map(len, items))
        case {"type": "blob", "blob": [_, size, *_]}:
            return int(size)
    return 0


STEPS: dict[int, tuple[int, Step]] = {0: (4, _from_0_1_0)}
"""By the format that it reads, each step and the format that it leaves."""
