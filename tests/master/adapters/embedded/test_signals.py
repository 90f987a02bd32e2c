"""What the adapters report to the server of their own process."""

from collections.abc import Sequence

from cloudpar_master.adapters.embedded.database import Database
from cloudpar_master.adapters.embedded.package_store import SqlitePackageStore
from cloudpar_master.adapters.embedded.task_queue import SqliteTaskQueue
from cloudpar_master.adapters.system import RandomIds
from cloudpar_master.ports import Needs, Sending
from master.packages import create, make_head
from master.stores import SetClock


class Recorded:
    """Keeps the signals, and checks that what they report is committed already."""

    def __init__(self, database: Database) -> None:
        self.heads: list[str] = []
        self.chunks: list[Sequence[Needs]] = []
        self._database = database

    def head_saved(self, package_id: str) -> None:
        assert not self._database._connection.in_transaction
        self.heads.append(package_id)

    def chunks_sent(self, needs: Sequence[Needs]) -> None:
        assert not self._database._connection.in_transaction
        self.chunks.append(needs)


def test_a_saved_head_is_signalled_and_a_lost_save_is_not(database: Database) -> None:
    signals = Recorded(database)
    packages = SqlitePackageStore(database, signals)
    spec = create(packages)
    assert packages.save(make_head(spec, 1), 0.0)
    assert not packages.save(make_head(spec, 1), 0.0)
    assert signals.heads == ["p"]


def test_chunks_are_signalled_once_they_are_in_the_queue(database: Database, clock: SetClock) -> None:
    signals = Recorded(database)
    queue = SqliteTaskQueue(database, clock, RandomIds(), signals)
    queue.send([Sending("g1", "b", package="p", python="3.11"), Sending("g2", "b", package="q")])
    queue.send([Sending("g2", "b", package="q"), Sending("g3", "b")])
    queue.send([Sending("g3", "b")])
    assert signals.chunks == [[("p", "3.11"), ("q", "")], [("", "")]]
