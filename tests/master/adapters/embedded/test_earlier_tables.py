"""Tables that an earlier version made are used, with what waits in them."""

import sqlite3
from contextlib import closing
from pathlib import Path

from cloudpar_master.adapters.embedded.database import Database
from cloudpar_master.adapters.embedded.migrations import FORMAT
from cloudpar_master.adapters.embedded.signals import NoSignals
from cloudpar_master.adapters.embedded.system import RandomIds
from cloudpar_master.adapters.embedded.task_queue import SqliteTaskQueue
from cloudpar_master.ports import Sending
from master.stores import SetClock

MESSAGES_OF_0_2_0 = """
CREATE TABLE messages (
    id INTEGER PRIMARY KEY, body TEXT NOT NULL, state TEXT NOT NULL, visible_at REAL NOT NULL,
    receives INTEGER NOT NULL DEFAULT 0, receipt TEXT
);
CREATE INDEX messages_waiting ON messages (id) WHERE state = 'waiting';
"""
INSERT_OF_0_2_0 = "INSERT INTO messages (body, state, visible_at) VALUES (?, 'waiting', 0.0)"


def test_chunks_that_wait_in_a_queue_of_0_2_0_are_handed_out(tmp_path: Path, clock: SetClock) -> None:
    path = tmp_path / "master.sqlite"
    with closing(sqlite3.connect(path)) as earlier:
        earlier.executescript(MESSAGES_OF_0_2_0)
        earlier.execute(f"PRAGMA user_version = {FORMAT}")
        earlier.execute(INSERT_OF_0_2_0, ("old",))
        earlier.commit()
    with closing(Database(path)) as database:
        queue = SqliteTaskQueue(database, clock, RandomIds(), NoSignals())
        queue.send([Sending("new", "new", "ann", "p")])
        database.execute(INSERT_OF_0_2_0, ("old, by the earlier version once more",))
        assert {message.body for message in queue.receive(10, 6.0, "a")} == {
            "old", "new", "old, by the earlier version once more",
        }  # fmt: skip
