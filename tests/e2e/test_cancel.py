"""Packages that are cancelled while they run; the timer settles them when no more results can come."""

from pathlib import Path

import pytest

from cloudpar.errors import PackageFailed
from support.books import close_books
from support.command import cloudpar_json
from support.customer import Customer
from support.gates import opening
from support.task_functions import mark_and_wait
from support.waiting import await_file

from .deployment import Deployment

TASKS = 50


def test_a_package_is_cancelled_by_command(cluster: Deployment, tmp_path: Path) -> None:
    customer, running = Customer(cluster, "commands"), tmp_path / "running"
    with customer.pool() as pool, opening(tmp_path / "gate") as gate:
        results = pool.map(mark_and_wait, [(str(running), str(gate))] * TASKS)
        assert results.package_id is not None
        await_file(running)
        user = ["--endpoint", cluster.endpoint, "--token", customer.token]
        ended = cloudpar_json("packages", "cancel", results.package_id, *user)
        assert (ended["state"], ended["cancelled"]) == ("cancelled", TASKS)
        with pytest.raises(PackageFailed, match="cancelled"):
            list(results)
        assert list(pool.map(abs, [-1, -2])) == [1, 2]  # the executors are free again


def test_a_package_is_cancelled_by_its_owner(cancelled: tuple[Customer, str]) -> None:
    customer, _ = cancelled
    with customer.pool() as pool:
        assert list(pool.map(abs, [-1, -2])) == [1, 2]


@pytest.mark.last
def test_the_timer_closes_the_books(cluster: Deployment, cancelled: tuple[Customer, str]) -> None:
    customer, package_id = cancelled
    books = close_books(cluster, customer.token, package_id)
    assert books.last.settled
    account = customer.account()
    assert account.reserved_us == 0
    assert account.spent_us >= books.last.progress.charged_us > 0  # the account also ran two short tasks
