"""kill -9 during the main job: the job completes with correct results, and each task is charged once."""

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from cloudpar.demo.factorization import correct
from support.books import close_books
from support.customer import Customer
from support.shared_up import cluster_of
from support.task_functions import NUMBERS, TASKS, factorize_before_gate, main_job
from support.up import Up

up = cluster_of(workers=2)
"""One cluster for all tests: it restarts killed processes."""


def master(up: Up) -> psutil.Process:
    return up.child("cloudpar_master")


def agent(up: Up) -> psutil.Process:
    return up.child("cloudpar_worker")


def zygote(up: Up) -> psutil.Process:
    return agent(up).children()[0]


def executor(up: Up) -> psutil.Process:
    return zygote(up).children()[0]


@pytest.mark.parametrize(
    "victims",
    [[agent], [executor], [zygote], [master], [master, executor, agent]],
    ids=lambda each: ", ".join(victim_of.__name__ for victim_of in each),
)
def test_the_main_job_survives_kills(up: Up, tmp_path: Path, victims: list[Callable[[Up], psutil.Process]]) -> None:
    customer, gate = Customer(up, "-".join(victim_of.__name__ for victim_of in victims)), tmp_path / "gate"
    with customer.pool() as pool:
        results = pool.map(factorize_before_gate, main_job(gate))
        found = [next(results)]  # the job runs, and does not end until the gate opens
        killed = []
        for victim_of in victims:
            killed.append(victim_of(up))
            killed[-1].kill()
            found.append(next(results))
        gate.touch()
        package_id = results.package_id
        assert package_id is not None
        books = close_books(up, customer.token, package_id)
        found += results
    assert correct(NUMBERS, found)
    assert books.last.state == "completed"
    assert not any(victim.is_running() for victim in killed)
    customer.assert_charged_once(books, TASKS)
