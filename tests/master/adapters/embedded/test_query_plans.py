"""No call of the embedded adapters reads a whole table: among 100,000 rows each call finds its own by an index."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from cloudpar_master.adapters.embedded.account_store import SqliteAccountStore
from cloudpar_master.adapters.embedded.database import Database
from cloudpar_master.adapters.embedded.package_store import SqlitePackageStore, code_in_use
from cloudpar_master.adapters.embedded.task_queue import MEMORY_S, SqliteTaskQueue
from cloudpar_master.adapters.system import RandomIds
from cloudpar_master.core.events import Acknowledged
from cloudpar_master.ports import Fit, Sending
from support.clock import NOW, SetClock
from support.packages import make_head, make_results, make_spec

MANY = 100_000
FIT = Fit(("3.11", "3.12"), ("p3", "p4"))
STEPS = 20_000
"""The most steps of SQLite's machine that a call may take. A look at each of MANY rows takes several times as many."""

Call = Callable[[SqlitePackageStore, SqliteAccountStore, SqliteTaskQueue], object]

CALLS: dict[str, Call] = {
    "receive": lambda packages, accounts, queue: queue.receive(10, 6.0, "attempt"),
    "receive what fits": lambda packages, accounts, queue: queue.receive(10, 6.0, "attempt", (), FIT),
    "passed over": lambda packages, accounts, queue: queue.passed_over(Fit(("3.12",))),
    "withdraw": lambda packages, accounts, queue: queue.withdraw("another account", "p7"),
    "send": lambda packages, accounts, queue: queue.send([Sending("new", "body")]),
    "delete": lambda packages, accounts, queue: queue.delete(["receipt 7"]),
    "extend": lambda packages, accounts, queue: queue.extend(["receipt 7"], 6.0),
    "waiting": lambda packages, accounts, queue: queue.waiting(),
    "waiting_needs": lambda packages, accounts, queue: queue.waiting_needs(),
    "has_others": lambda packages, accounts, queue: queue.has_others({"p7"}),
    "dead": lambda packages, accounts, queue: queue.dead(10),
    "due": lambda packages, accounts, queue: packages.due(NOW, 10),
    "defer": lambda packages, accounts, queue: packages.defer("p7", 2e12, 1e12),
    "uncut": lambda packages, accounts, queue: packages.uncut(),
    "running": lambda packages, accounts, queue: packages.running("a"),
    "running_heads": lambda packages, accounts, queue: packages.running_heads("a"),
    "unsettled": lambda packages, accounts, queue: packages.unsettled("a"),
    "at_work": lambda packages, accounts, queue: packages.at_work(10),
    "stored_bytes": lambda packages, accounts, queue: packages.stored_bytes("a"),
    "code_in_use": lambda packages, accounts, queue: list(code_in_use(packages._db)),
    "of_account": lambda packages, accounts, queue: packages.of_account("a", 10),
    "of_all": lambda packages, accounts, queue: packages.of_account(None, 10),
    "load": lambda packages, accounts, queue: packages.load("p7"),
    "save": lambda packages, accounts, queue: packages.save(make_head(make_spec("p7"), 2), NOW, make_results(1)),
    "append": lambda packages, accounts, queue: packages.append("p7", [("key", Acknowledged())]),
    "open": lambda packages, accounts, queue: packages.open("p7", 10),
    "find": lambda packages, accounts, queue: packages.find(["p7"]),
    "pages": lambda packages, accounts, queue: packages.pages("p7", 0, 9, 1000),
    "forget": lambda packages, accounts, queue: packages.forget(make_head(make_spec("p7", started_at=7.0))),
    "reserve": lambda packages, accounts, queue: accounts.reserve("a", "p7", 1, 10),
    "settle": lambda packages, accounts, queue: accounts.settle("a", "p7", 10),
}


def fill(database: Database, state: str) -> None:
    """Fill the tables by one statement each."""
    database.execute("CREATE TEMP TABLE n (i INTEGER PRIMARY KEY)")
    database.executemany("INSERT INTO n VALUES (?)", ((number,) for number in range(MANY)))
    for insert in (
        (
            "INSERT INTO packages (package_id, account_id, started_at, version, due_at, uncut, unsettled, running,"
            " tasks, data_bytes, head) SELECT 'p' || i, 'a', i, 0, 1e12, i = 7, i = 7, i = 7, 1, 1, x'' FROM n"
        ),
        "INSERT INTO specs SELECT 'p' || i, x'' FROM n WHERE i <> 7",
        "INSERT INTO inbox (package_id, key, event) SELECT 'p' || i, 'key', x'' FROM n",
        "INSERT INTO pages SELECT 'p' || i, 1, x'90' FROM n",
        "INSERT INTO settlements SELECT 's' || i, 1, 1e12 FROM n",
        "INSERT INTO slices SELECT 's' || i, 1, 1 FROM n",
        "INSERT INTO attempts SELECT 'attempt ' || i, 'receipt ' || i, 1e12 FROM n",
        "INSERT INTO sent_groups SELECT 'group ' || i, 1e12 FROM n",
    ):
        database.execute(insert)
    messages = (
        "INSERT INTO messages SELECT i, 'body', ?, 1e12, 1, 'receipt ' || i, 'a', 'p' || (i % 100), 0, 1, '3.11',"
        " 'group ' || i FROM n"
    )
    database.execute(messages, (state,))
    read = "UPDATE packages SET head = ? WHERE package_id = 'p7' OR started_at > ?"
    database.execute(read, (encoded_head(database), MANY - 20))


def encoded_head(database: Database) -> bytes:
    packages = SqlitePackageStore(database)
    packages.create(make_spec("template"), make_head(make_spec("template")))
    (head,) = database.execute("SELECT head FROM packages WHERE package_id = 'template'").fetchone()
    return bytes(head)


@contextmanager
def counted(database: Database) -> Iterator[list[int]]:
    """Yield a list that grows by one for each hundred steps that SQLite takes."""
    hundreds: list[int] = []
    database._connection.set_progress_handler(lambda: hundreds.append(1), 100)
    yield hundreds
    database._connection.set_progress_handler(None, 0)


@pytest.mark.parametrize("state", ["waiting", "hidden", "dead"])
def test_every_call_takes_few_steps_of_sqlite(database: Database, clock: SetClock, state: str) -> None:
    fill(database, state)
    packages = SqlitePackageStore(database)
    accounts = SqliteAccountStore(database, clock)
    queue = SqliteTaskQueue(database, clock, RandomIds())
    queue._swept_at = clock.now() - MEMORY_S / 10
    steps: dict[str, int] = {}
    for name, call in CALLS.items():
        with counted(database) as hundreds:
            call(packages, accounts, queue)
        steps[name] = 100 * len(hundreds)
    assert {name: count for name, count in steps.items() if count > STEPS} == {}
