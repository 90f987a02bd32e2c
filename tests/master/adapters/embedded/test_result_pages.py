"""How many results one read returns: the master's one thread serves no other account meanwhile."""

from cloudpar_master.adapters.embedded.database import Database
from cloudpar_master.adapters.embedded.package_store import RESULT_BYTES, SqlitePackageStore
from cloudpar_protocol.payloads import TaskResult
from support.packages import create, put_page


def test_a_read_of_many_small_results_is_bounded_by_their_number(database: Database) -> None:
    packages = SqlitePackageStore(database)
    create(packages)
    for _ in range(5):
        put_page(packages, [TaskResult(index, "ok", 1) for index in range(100)])
    assert len(packages.pages("p", 0, 9, 250 * RESULT_BYTES)) == 2
    assert len(packages.pages("p", 2, 9, 1)) == 1
