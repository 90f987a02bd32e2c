"""Converts the database of an earlier release to today's format, in one transaction."""

import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path

from . import format_4, format_5

FORMAT = 5
"""The format that this release writes. Raise it, and add a step to `STEPS`, when a release cannot read the tables or
heads that the release before it stored."""

RELEASES = {0: "0.1.0", 4: "0.2.0", 5: "0.3.0"}
"""The release that first wrote each format. The formats between these were never released."""

Step = Callable[[sqlite3.Connection], None]

_log = logging.getLogger(__name__)


class FormatError(sqlite3.DatabaseError):
    """The database is of a format that this release cannot read; the text says what to do."""


def convert(connection: sqlite3.Connection, path: Path) -> None:
    """Convert a database to the format of this release. A copy in the earlier format is kept beside it.

    The copy is for users who return to the earlier release. If the process dies during the conversion, the database
    stays as it was, and the next start converts it.

    Args:
        connection: The connection to the database, in autocommit mode. No other process may write to the database
            meanwhile.
        path: The database's file.

    Raises:
        FormatError: A later release or an unreleased version wrote the database.
        sqlite3.Error, OSError: The copy or the conversion failed, for example because the disk is full. The database
            was not changed.
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
    """Copy the database as it is. The copy gets its name only when it is complete."""
    partial = kept.with_name(f"{kept.name}.partial")
    partial.unlink(missing_ok=True)
    connection.execute("VACUUM INTO ?", (str(partial),))
    partial.replace(kept)


STEPS: dict[int, tuple[int, Step]] = {0: (4, format_4.convert), 4: (5, format_5.convert)}
"""For each earlier format, the next format and the step that converts to it."""
