"""A task that loses its workers repeatedly is given up alone, and is not charged."""

from pathlib import Path

import pytest

from cloudpar.errors import TaskLost
from support.books import close_books, progress
from support.customer import Customer
from support.up import Up, worker
from support.waiting import until

LOSSES, MOST_LOSSES = 4, 12
"""Losses of the task alone, and the most losses if other chunks were lost with it."""


def given_up(up: Up, customer: Customer, package_id: str | None) -> bool:
    assert package_id is not None
    return bool(progress(up, customer.token, package_id).errors)


def deadly(job: tuple[int, str]) -> int:
    number, running = job
    if number == 1:
        Path(running).touch()
        while True:
            pass
    return number


def test_a_task_that_loses_its_workers_is_given_up_alone(folder: Path, tmp_path: Path) -> None:
    running = tmp_path / "running"
    with Up(folder, workers=0, more=["--set", "lease_s=1"]) as up:
        customer = Customer(up, "deadly")
        with customer.pool() as pool:
            results = pool.map(deadly, [(number, str(running)) for number in range(3)], chunksize=1)
            for _ in range(MOST_LOSSES):
                with worker(up) as agent:
                    until(lambda: running.exists() or given_up(up, customer, results.package_id))
                    if not running.exists():
                        break
                    running.unlink()
                    agent.kill()
            with worker(up):
                assert next(results) == 0
                with pytest.raises(TaskLost, match=f"lost {LOSSES} times"):
                    next(results)
                assert next(results) == 2
            assert results.package_id is not None
            books = close_books(up, customer.token, results.package_id)
            customer.assert_charged_once(books, 3)
            assert not running.exists()
