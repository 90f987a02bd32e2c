"""Guarantee 17: an account cannot exceed its quota, even with many requests or with tasks that falsify their clocks."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from cloudpar import Pool
from cloudpar.errors import QuotaExhausted
from cloudpar_worker.executor import runner
from support.books import Books, close_books
from support.customer import Customer
from support.scale import Scale
from support.up import Up

EXECUTORS = 2
TASK_S, LIMIT_S, PUBLISHING_S = 0.01, 0.3, 0.2
"""A task's duration, its time limit, and how often a worker publishes at least when quota is scarce."""

OVERRUN_S = EXECUTORS * (LIMIT_S + PUBLISHING_S)
OVERLOAD = 10


class Job(NamedTuple):
    """A task's arguments. The task writes to its own file, repeatedly, how long it has been running."""

    folder: str
    number: int
    task_s: float


def work(job: Job) -> None:
    note = os.open(Path(job.folder, str(job.number)), os.O_WRONLY | os.O_CREAT)
    began, elapsed_s = time.monotonic(), 0.0
    while elapsed_s < job.task_s:
        time.sleep(0.001)
        elapsed_s = time.monotonic() - began
        os.pwrite(note, f"{elapsed_s:12.6f}".encode(), 0)  # overwrites the last note, so that a killed task leaves one
    os.close(note)


def cheat(job: Job) -> None:
    """Do the same with all clocks of the executor stopped, and its measurement replaced."""
    real = time.monotonic
    try:
        work(job)
    finally:
        stopped = time.monotonic_ns()
        time.monotonic = time.time = time.perf_counter = lambda: 0.0
        time.monotonic_ns = time.perf_counter_ns = time.time_ns = lambda: stopped
        runner._clock = lambda: stopped
        runner._elapsed_us = lambda started_at_ns: started_at_ns and 1
        time.monotonic = real  # the next task measures its time with this clock


def worked_s(folder: Path) -> float:
    """Return the running time of all tasks, according to their notes."""
    return sum(float(path.read_text() or 0.0) for path in folder.iterdir())


def start(pool: Pool, task: Callable[[Job], None], folder: Path, tasks: range) -> str | None:
    """Start a package and return its id; None if the quota is already used up."""
    jobs = [Job(str(folder), number, TASK_S) for number in tasks]
    try:
        results = pool.map(task, jobs, task_timeout_s=LIMIT_S)
    except QuotaExhausted:
        return None
    package_id = results.package_id
    assert package_id is not None
    results.detach()
    return package_id


def assert_nothing_runs(cluster: Up, folder: Path) -> None:
    """Occupy all executors with another account's tasks, and check that the old tasks note nothing meanwhile."""
    before = worked_s(folder)
    with cluster.pool() as pool:
        assert len(list(pool.map(time.sleep, [0.2] * 2 * EXECUTORS))) == 2 * EXECUTORS
    assert worked_s(folder) == before


def assert_says_why(books: Books) -> None:
    assert (books.last.state, books.last.reason) == ("failed", "quota")
    assert books.last.message is not None
    assert "cloudpar account grant" in books.last.message


@pytest.mark.parametrize("task", [work, cheat], ids=["honest", "cheating"])
def test_g17_ten_times_the_quota(
    cluster: Up, tmp_path: Path, scale: Scale, reached: Callable[[str], None], task: Callable[[Job], None]
) -> None:
    quota_s, packages = scale((0.4, 2), (5.0, 5))
    customer = Customer(cluster, f"overloads-{task.__name__}", quota=f"{round(quota_s * 1000)}ms")
    tasks = round(OVERLOAD * quota_s / TASK_S)
    with customer.pool() as pool:
        started = [start(pool, task, tmp_path, range(tasks * at, tasks * (at + 1))) for at in range(packages)]
        books = [close_books(cluster, customer.token, package_id) for package_id in filter(None, started)]
        assert books
        for each in books:
            assert_says_why(each)
        assert_nothing_runs(cluster, tmp_path)
        with pytest.raises(QuotaExhausted, match="cloudpar account grant"):
            pool.map(task, [Job(str(tmp_path), -1, TASK_S)])
    account = customer.account()
    assert account.spent_us == sum(each.last.progress.charged_us for each in books)
    assert account.spent_us <= account.granted_us == round(quota_s * 1e6)
    assert account.reserved_us == 0
    overrun_s = worked_s(tmp_path) - quota_s
    assert overrun_s <= OVERRUN_S
    figure = f"{OVERLOAD}x overload of {quota_s:g} s by each of {packages} packages of {task.__name__}ing tasks"
    charged = f"{account.spent_us / 1e6:g} s charged"
    reached(f"{figure}: {charged}, overrun {overrun_s:.2f} s of at most {OVERRUN_S:g} s, nothing ran afterwards")


def test_g17_a_task_without_end(cluster: Up, tmp_path: Path, scale: Scale, reached: Callable[[str], None]) -> None:
    """Each of a few long tasks would exceed the quota."""
    quota_s = scale(0.4, 5.0)
    customer = Customer(cluster, "endless", quota=f"{round(quota_s * 1000)}ms")
    with customer.pool() as pool:
        results = pool.map(work, [Job(str(tmp_path), number, 60.0) for number in range(10)])
        assert results.package_id is not None
        books = close_books(cluster, customer.token, results.package_id)
        results.detach()
    assert_says_why(books)
    assert_nothing_runs(cluster, tmp_path)
    account = customer.account()
    assert (account.spent_us, account.reserved_us) == (account.granted_us, 0)
    overrun_s = worked_s(tmp_path) - quota_s
    assert overrun_s <= OVERRUN_S
    reached(f"10 tasks without end: stopped, {quota_s:g} s charged, overrun {overrun_s:.2f} s")
