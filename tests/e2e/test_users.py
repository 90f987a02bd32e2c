"""Two users of one deployment."""

from pathlib import Path

import pytest

from cloudpar.errors import NotFound, PackageFailed
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import CancelTasks, ListPackages
from support.books import close_books, connected
from support.customer import Customer
from support.gates import opening
from support.task_functions import mark_and_wait
from support.waiting import await_file
from system.test_fairness import EXECUTORS, TASK_S, done_meanwhile

from .deployment import Deployment

PROMISED_S = 15.0
TASKS_IN_PROMISED_TIME = int(PROMISED_S * EXECUTORS / TASK_S)


def test_a_user_cannot_see_read_or_cancel_the_others_packages(cluster: Deployment, tmp_path: Path) -> None:
    owner, stranger = Customer(cluster, "owner"), Customer(cluster, "stranger")
    running = tmp_path / "running"
    with owner.pool() as pool, stranger.pool() as other, opening(tmp_path / "gate") as gate:
        results = pool.map(mark_and_wait, [(str(running), str(gate))])
        package_id = results.package_id
        assert package_id is not None
        await_file(running)
        with pytest.raises((NotFound, PackageFailed), match="no such package"):
            other.attach(package_id).results()
        with connected(cluster, stranger.token) as wire:
            assert wire.call(routes.LIST_PACKAGES, ListPackages()).packages == []
            with pytest.raises(NotFound):
                wire.call(routes.CANCEL_TASKS, CancelTasks(package_id=package_id))
        gate.touch()
        books = close_books(cluster, owner.token, package_id)
        assert list(results) == ["done"]
    owner.assert_charged_once(books, 1)
    assert stranger.account().spent_us == 0


def test_a_user_does_not_wait_for_the_others_package(cluster: Deployment) -> None:
    """The chunks of the other package last up to 24 s, and two more of them wait in the queue."""
    assert 0 < done_meanwhile(cluster, first=2_000) < TASKS_IN_PROMISED_TIME
