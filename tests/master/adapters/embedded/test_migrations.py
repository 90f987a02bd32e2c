"""What a conversion does to single rows, and what a conversion that is interrupted leaves.

tests/system/test_upgrades.py converts whole folders of earlier releases.
"""

import ast
import logging
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cloudpar_master.adapters.embedded import format_4, migrations
from cloudpar_master.adapters.embedded.database import Database
from cloudpar_master.adapters.embedded.migrations import FORMAT, FormatError
from cloudpar_master.adapters.embedded.package_store import SqlitePackageStore
from cloudpar_master.adapters.embedded.task_queue import SqliteTaskQueue
from cloudpar_master.adapters.system import RandomIds
from cloudpar_master.core.head import OpenRange
from cloudpar_master.ports import Sending
from support.clock import SetClock
from support.packages import make_head, make_spec
from system.mixture import LAST_OF, ROOT

PACKAGE, STARTED_AT = "p1", 1_000.5
BILLING_ID = "p1@1000500"


def schema_of(release: str) -> str:
    """Return the tables as an earlier release made them."""
    name = f"{LAST_OF[release]}:functions/cloudpar_master/adapters/embedded/database.py"
    source = subprocess.run(["git", "show", name], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = next(
        node.value for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SCHEMA"
    )  # fmt: skip
    return str(ast.literal_eval(found))


def results(*numbers: int) -> bytes:
    return msgspec.msgpack.encode([[number, "ok", 7] for number in numbers])


def head(**changed: Any) -> bytes:
    plain = {
        "schema": 1, "package_id": PACKAGE, "account_id": "a1", "version": 5, "state": "running", "tasks": 9,
        "cursor": 9, "open": [[3, 9, 2, True]], "done": 3, "window": 8, "page": [4, "d"], "started_at": STARTED_AT,
        "now": 1_001.0, "settled": False,
    }  # fmt: skip
    return msgspec.msgpack.encode(plain | changed)


def spec(data: dict[str, Any]) -> bytes:
    start = {
        "v": 1, "idempotency_key": "k", "n": 9, "code": {"hash": "0" * 64, "inline": b"code"}, "call": "value",
        "codec": "pickle", "python": "3.11", "data": data,
    }  # fmt: skip
    plain = {"package_id": PACKAGE, "account_id": "a1", "request_hash": "", "start": start, "started_at": STARTED_AT}
    return msgspec.msgpack.encode(plain)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Make a database of 0.1.0 with a running package and an account."""
    path = tmp_path / "master.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(schema_of("0.1.0"))
        connection.execute("INSERT INTO accounts VALUES ('a1', 'ada', 'hash', 'active', 100, 7, 20, 1.0)")
        connection.execute("INSERT INTO slices VALUES (?, 0, 20)", (PACKAGE,))
        data = {"type": "inline", "items": [b"12345"] * 9}
        row = (PACKAGE, STARTED_AT, head())
        connection.execute("INSERT INTO packages VALUES (?, 'a1', ?, 5, 0, 0, ?)", row)
        connection.execute("INSERT INTO specs VALUES (?, ?)", (PACKAGE, spec(data)))
        # The chain is b, d: a and c lost their races.
        pages = [(2, "a", 0, "", results(0)), (2, "b", 0, "", results(1)), (4, "c", 2, "a", results(8)),
                 (4, "d", 2, "b", results(0, 2))]  # fmt: skip
        connection.executemany("INSERT INTO pages VALUES ('p1', ?, ?, ?, ?, ?)", pages)
        messages = [("p1#0#3#1",), ("p1#3#9#2",), ("p10#0#4#1",)]
        insert = "INSERT INTO messages (body, state, visible_at) VALUES (?, 'waiting', 1.0)"
        connection.executemany(insert, messages)
        connection.commit()
    return path


def query(path: Path, text: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(text).fetchall()


def tables(path: Path) -> dict[str, list[Any]]:
    """Return each table's columns, by its name. The order of the columns may differ."""
    names = query(path, "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
    with closing(sqlite3.connect(path)) as connection:
        columns = "SELECT name, type, pk FROM pragma_table_info(?) ORDER BY name"
        return {name: connection.execute(columns, (name,)).fetchall() for (name,) in names}


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [*connection.iterdump(), *map(str, connection.execute("PRAGMA user_version"))]


def test_a_running_package_of_0_1_0_keeps_its_results_its_place_its_slices_and_its_python(old: Path) -> None:
    database = Database(old)
    store = SqlitePackageStore(database)
    found = store.load(PACKAGE)
    assert found is not None
    assert (found.page, found.data_bytes, found.tasks.open) == (4, 45, [OpenRange(3, 9, 2, sent=True)])
    assert (found.billing_id, found.python) == (BILLING_ID, "3.11")
    pages = store.pages(PACKAGE, 0, 5, 1_000_000)
    assert [(page.version, [result.index for result in page.results]) for page in pages] == [(2, [1]), (4, [0, 2])]
    running = store.running("a1")
    assert (running.packages, running.tasks, running.data_bytes) == (1, 9, 45)
    database.close()
    assert query(old, "SELECT * FROM slices") == [(BILLING_ID, 0, 20)]
    assert query(old, "PRAGMA user_version") == [(FORMAT,)]


def test_chunks_that_wait_know_their_account_their_package_and_its_python(old: Path) -> None:
    Database(old).close()
    found = query(old, "SELECT body, account, package, first, python FROM messages ORDER BY id")
    assert found == [
        ("p1#0#3#1", "a1", PACKAGE, 1, "3.11"), ("p1#3#9#2", "a1", PACKAGE, 0, "3.11"), ("p10#0#4#1", "", "", 0, "")
    ]  # fmt: skip


def test_chunks_that_wait_in_a_queue_of_0_2_0_are_handed_out(tmp_path: Path, clock: SetClock) -> None:
    path = tmp_path / "master.sqlite"
    with closing(sqlite3.connect(path)) as earlier:
        earlier.executescript(schema_of("0.2.0"))
        earlier.execute("PRAGMA user_version = 4")
        earlier.execute("INSERT INTO messages (body, state, visible_at) VALUES ('old', 'waiting', 0.0)")
        earlier.commit()
    with closing(Database(path)) as database:
        queue = SqliteTaskQueue(database, clock, RandomIds())
        queue.send([Sending("new", "new", "ann", "p")])
        assert {message.body for message in queue.receive(10, 6.0, "a")} == {"old", "new"}
    assert path.with_name("master.sqlite.format-4").exists()


def test_a_converted_database_has_the_tables_of_a_new_one(old: Path, tmp_path: Path) -> None:
    fresh = tmp_path / "fresh.sqlite"
    for path in (old, fresh):
        Database(path).close()
    converted, new = map(tables, (old, fresh))
    assert converted == new


@pytest.mark.parametrize(("at", "charged"), [(STARTED_AT + 1, BILLING_ID), (STARTED_AT - 1, PACKAGE)])
def test_a_settlement_of_an_earlier_package_with_the_same_id_does_not_count_for_this_one(
    old: Path, at: float, charged: str
) -> None:
    with closing(sqlite3.connect(old)) as connection:
        connection.execute("INSERT INTO settlements VALUES (?, 7, ?)", (PACKAGE, at))
        connection.commit()
    Database(old).close()
    assert query(old, "SELECT package_id FROM settlements") == [(charged,)]


@pytest.mark.parametrize(
    ("data", "data_bytes"),
    [({"type": "blob", "blob": ["data/a1/x", 5_000]}, 5_000), ({"type": "range", "start": 0, "step": 1}, 0)],
)
def test_the_size_of_task_data_is_read_off_the_specification(old: Path, data: dict[str, Any], data_bytes: int) -> None:
    with closing(sqlite3.connect(old)) as connection:
        connection.execute("UPDATE specs SET spec = ?", (spec(data),))
        connection.commit()
    Database(old).close()
    assert query(old, "SELECT data_bytes FROM packages") == [(data_bytes,)]


def test_the_earlier_database_is_kept_beside_the_converted_one(old: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = dump(old)
    with caplog.at_level(logging.WARNING):
        Database(old).close()
        Database(old).close()
    kept = old.with_name("master.sqlite.format-0")
    assert dump(kept) == before
    assert [each.name for each in old.parent.iterdir() if "partial" in each.name] == []
    (said,) = caplog.messages
    assert "of release 0.1.0" in said
    assert kept.name in said


def test_a_conversion_that_fails_changes_nothing_and_the_next_start_converts(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def convert_and_fail(connection: sqlite3.Connection) -> None:
        format_4.convert(connection)
        raise sqlite3.OperationalError("database or disk is full")

    before = dump(old)
    with monkeypatch.context() as patch:
        patch.setitem(migrations.STEPS, 0, (4, convert_and_fail))
        with pytest.raises(sqlite3.OperationalError, match="full"):
            Database(old)
    assert dump(old) == before
    Database(old).close()
    assert query(old, "PRAGMA user_version") == [(FORMAT,)]


DYING = """
import os, signal, sys
from pathlib import Path
from cloudpar_master.adapters.embedded import format_4, migrations
from cloudpar_master.adapters.embedded.database import Database
whole = migrations.STEPS[0][1]
def die(connection):
    connection.execute("PRAGMA cache_spill = 1")
    whole(connection)
    os.kill(os.getpid(), signal.SIGKILL)
migrations.STEPS[0] = (4, die)
Database(Path(sys.argv[1]))
"""


def test_a_process_that_is_killed_while_it_converts_changes_nothing(old: Path) -> None:
    before = dump(old)
    ended = subprocess.run([sys.executable, "-c", DYING, str(old)], check=False, env=os.environ)
    assert ended.returncode == -signal.SIGKILL
    assert dump(old) == before
    Database(old).close()
    assert query(old, "PRAGMA user_version") == [(FORMAT,)]


def test_a_later_releases_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "master.sqlite"
    Database(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    before = dump(path)
    with pytest.raises(FormatError, match=r"a later release made it, so start that .* or choose another"):
        Database(path)
    assert dump(path) == before


def test_a_format_that_no_release_wrote_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "master.sqlite"
    Database(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 2")
    with pytest.raises(FormatError, match=r"format is 2, which no release .* choose another folder"):
        Database(path)


def test_each_release_has_a_format_that_can_be_converted() -> None:
    assert set(migrations.RELEASES.values()) <= set(LAST_OF)
    for number in migrations.RELEASES:
        assert number == FORMAT or migrations._steps(number)


def test_a_column_and_an_index_that_came_later_are_added_to_an_earlier_database(tmp_path: Path) -> None:
    path = tmp_path / "master.sqlite"
    Database(path).close()
    today = tables(path)
    index = "SELECT sql FROM sqlite_master WHERE name = 'packages_unsettled'"
    wanted = query(path, index)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO messages (body, state, visible_at) VALUES ('p1#0#3#1', 'waiting', 1.0)")
        connection.execute("ALTER TABLE messages DROP COLUMN cost_us")
        connection.execute("DROP INDEX packages_unsettled")
        connection.execute("CREATE INDEX packages_unsettled ON packages (account_id) WHERE unsettled")
        connection.commit()
    Database(path).close()
    assert tables(path) == today
    assert query(path, index) == wanted
    assert query(path, "SELECT body, cost_us FROM messages") == [("p1#0#3#1", 1)]


def test_a_package_that_an_earlier_release_stored_counts_from_its_next_save_on(tmp_path: Path) -> None:
    path, spec = tmp_path / "master.sqlite", make_spec("p")
    with closing(Database(path)) as database:
        SqlitePackageStore(database).create(spec, make_head(spec))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP INDEX packages_stored")
        connection.execute("ALTER TABLE packages DROP COLUMN stored_bytes")
        connection.commit()
    with closing(Database(path)) as database:
        packages = SqlitePackageStore(database)
        assert packages.stored_bytes(spec.account_id) == 0
        head = make_head(spec, 1)
        assert packages.save(head, 0.0)
        assert packages.stored_bytes(spec.account_id) == head.counted_bytes > 0
