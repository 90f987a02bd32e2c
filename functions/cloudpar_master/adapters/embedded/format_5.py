"""Converts the database of 0.2.0 to that of 0.3.0.

Stored bytes are read and written as plain dictionaries, never with the current classes: the classes will change, but
this conversion must not.
"""

import sqlite3

import msgspec

COLUMNS = (
    "account TEXT NOT NULL DEFAULT ''",
    "package TEXT NOT NULL DEFAULT ''",
    "first INTEGER NOT NULL DEFAULT 0",
    "cost_us INTEGER NOT NULL DEFAULT 1",
    "python TEXT NOT NULL DEFAULT ''",
)

_encode = msgspec.msgpack.Encoder().encode


def convert(connection: sqlite3.Connection) -> None:
    """Convert the whole database, within the caller's transaction.

    In 0.3.0 packages take turns, and a chunk goes only to a worker that can run it. Therefore a head names the version
    of Python that its tasks need, and a message names its account, its package and this version.
    """
    for column in COLUMNS:
        connection.execute(f"ALTER TABLE messages ADD COLUMN {column}")
    connection.execute("DROP INDEX IF EXISTS messages_waiting")
    select = "SELECT package_id, account_id, head, spec FROM packages JOIN specs USING (package_id)"
    for package_id, account_id, encoded, spec in connection.execute(select).fetchall():
        start = msgspec.msgpack.decode(spec)["start"]
        python = start["python"] if start["codec"] == "pickle" else ""
        head = _encode(msgspec.msgpack.decode(encoded) | {"python": python})
        connection.execute("UPDATE packages SET head = ? WHERE package_id = ?", (head, package_id))
        # A message's body starts with the package's id and the number of the chunk's first task.
        connection.execute(
            "UPDATE messages SET account = ?, package = ?, python = ?, first = body LIKE ? WHERE body LIKE ?",
            (account_id, package_id, python, f"{package_id}#0#%", f"{package_id}#%"),
        )
