"""Running tasks stop soon after their package is cancelled; a package that is cancelled before its lease never runs."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from cloudpar_master.core.policy import Policy
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import CancelTasks
from cloudpar_worker.core.master_policy import BEATS
from support.books import close_books, connected
from support.customer import Customer
from support.scale import Scale
from support.up import Up, worker
from support.waiting import HANG_S, await_file

BEAT_S = Policy().lease_s / BEATS
AFTER_BEAT_S = 2.0


def cancel(up: Up, customer: Customer, package_id: str) -> float:
    """Cancel a package and return the time of the confirmation."""
    with connected(up, customer.token) as wire:
        assert wire.call(routes.CANCEL_TASKS, CancelTasks(package_id=package_id)).state == "cancelled"
        return time.monotonic()


def test_g15_a_running_task_stops(cluster: Up, tmp_path: Path, scale: Scale, reached: Callable[[str], None]) -> None:
    customer, took_s = Customer(cluster, "impatient"), list[float]()

    def endless(path: str) -> None:
        Path(f"{path}.new").write_text(str(os.getpid()))
        Path(f"{path}.new").rename(path)
        while True:
            time.sleep(3600)

    with customer.pool() as pool:
        for number in range(scale(1, 20)):
            running = tmp_path / str(number)
            results = pool.map(endless, [str(running)])
            assert results.package_id is not None
            await_file(running)
            executor = psutil.Process(int(running.read_text()))
            confirmed_at = cancel(cluster, customer, results.package_id)
            executor.wait(HANG_S)
            took_s.append(time.monotonic() - confirmed_at)
            books = close_books(cluster, customer.token, results.package_id)
            assert (books.last.state, books.results) == ("cancelled", [])
            assert books.last.progress.charged_us > 0, "what ran is charged"
    assert max(took_s) <= BEAT_S + AFTER_BEAT_S
    reached(f"{len(took_s)} running tasks stopped after {max(took_s):.1f} s at most, where a beat is {BEAT_S:g} s")


def test_g15_cancelled_before_its_lease_it_never_runs(
    folder: Path, tmp_path: Path, scale: Scale, reached: Callable[[str], None]
) -> None:
    packages, tasks = scale(3, 40), 20

    def leave_a_mark(number: int) -> None:
        (tmp_path / f"mark {number}").touch()

    with Up(folder, workers=0) as up:
        customer = Customer(up, "changes his mind")
        with customer.pool() as pool:
            package_ids = [pool.map(leave_a_mark, range(tasks)).package_id or "" for _ in range(packages)]
            for package_id in package_ids:
                cancel(up, customer, package_id)
            with worker(up):  # the queue is first in, first out: a later package's task has come after all of these
                assert list(pool.map(abs, [-1, -2])) == [1, 2]
            for package_id in package_ids:
                books = close_books(up, customer.token, package_id)
                assert (books.results, books.last.progress.charged_us) == ([], 0)
        assert list(tmp_path.glob("mark *")) == []
    reached(f"{packages * tasks:,} tasks cancelled before their leases: 0 ran")
