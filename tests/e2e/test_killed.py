"""kill -9 of an executor, and of a whole worker, while a package runs."""

import os
from pathlib import Path

import psutil

from support.books import close_books
from support.customer import Customer
from support.gates import opening
from support.task_functions import mark_and_wait
from support.waiting import until

from .agents import Worker
from .deployment import Deployment

TASKS = 8


def wait_where(job: tuple[str, str]) -> str:
    """Report the process in which this task runs, and wait for a gate."""
    folder, gate = job
    return mark_and_wait((f"{folder}/{os.getpid()}", gate))


def test_a_killed_executors_tasks_run_again(cluster: Deployment, tmp_path: Path) -> None:
    customer, marks = Customer(cluster, "executor"), tmp_path / "marks"
    marks.mkdir()
    with customer.pool() as pool, opening(tmp_path / "gate") as gate:
        results = pool.map(wait_where, [(str(marks), str(gate))] * TASKS)
        until(lambda: any(marks.iterdir()))
        psutil.Process(int(next(marks.iterdir()).name)).kill()
        gate.touch()
        assert results.package_id is not None
        books = close_books(cluster, customer.token, results.package_id)
        assert list(results) == ["done"] * TASKS
    customer.assert_charged_once(books, TASKS)


def test_a_killed_workers_tasks_run_again(cluster: Deployment, tmp_path: Path) -> None:
    customer, marks = Customer(cluster, "worker"), tmp_path / "marks"
    marks.mkdir()
    with (
        Worker(cluster, tmp_path / "log") as victim,
        customer.pool() as pool,
        opening(tmp_path / "gate") as gate,
    ):
        results = pool.map(wait_where, [(str(marks), str(gate))] * TASKS)
        until((marks / str(victim.executor().pid)).exists)
        victim.kill()
        gate.touch()
        assert results.package_id is not None
        books = close_books(cluster, customer.token, results.package_id)
        assert list(results) == ["done"] * TASKS
    customer.assert_charged_once(books, TASKS)
