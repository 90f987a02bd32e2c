"""What the adapters report to the server of their own process: only what is committed already."""

from collections.abc import Sequence

from cloudpar_master.adapters.embedded.database import Database
from cloudpar_master.adapters.embedded.package_store import SqlitePackageStore
from cloudpar_master.adapters.embedded.task_queue import COUNTED, SqliteTaskQueue
from cloudpar_master.adapters.system import RandomIds
from cloudpar_master.ports import Needs, Sending
from support.clock import SetClock
from support.packages import create, make_head


def test_a_saved_head_is_signalled_and_a_lost_save_is_not(database: Database) -> None:
    heads: list[str] = []

    def saved(package_id: str) -> None:
        assert not database._connection.in_transaction
        heads.append(package_id)

    packages = SqlitePackageStore(database, saved)
    spec = create(packages)
    assert packages.save(make_head(spec, 1), 0.0)
    assert not packages.save(make_head(spec, 1), 0.0)
    assert heads == ["p"]


def test_chunks_are_signalled_once_they_are_in_the_queue(database: Database, clock: SetClock) -> None:
    chunks: list[Sequence[Needs]] = []

    def sent(needs: Sequence[Needs]) -> None:
        assert not database._connection.in_transaction
        chunks.append(needs)

    queue = SqliteTaskQueue(database, clock, RandomIds(), sent)
    queue.send([Sending("g1", "b", package="p", python="3.11"), Sending("g2", "b", package="q")])
    queue.send([Sending("g2", "b", package="q"), Sending("g3", "b")])
    queue.send([Sending("g3", "b")])
    assert chunks == [[Needs("", "p", "3.11"), Needs("", "q", "")], [Needs("", "", "")]]


def test_the_needs_of_waiting_chunks_name_each_package_even_behind_a_long_one(
    database: Database, clock: SetClock
) -> None:
    queue = SqliteTaskQueue(database, clock, RandomIds())
    assert queue.waiting_needs() == []
    queue.send([Sending(f"a{number}", "b", account="a", package="long") for number in range(2 * COUNTED)])
    queue.send([Sending(f"b{number}", "b", account="b", package="short", python="3.11") for number in range(3)])
    long, short = Needs("a", "long", ""), Needs("b", "short", "3.11")
    assert queue.waiting_needs() == [long] * (COUNTED // 2) + [short] * 3
    queue.receive(10, 6.0, "attempt", ["long"])
    assert set(queue.waiting_needs()) == {long}
    clock.move(7.0)
    assert queue.waiting_needs() == [long] * (COUNTED // 2) + [short] * 3
