"""kill -9 of workers, one after the other, under load: no task is lost, and none is charged twice."""

import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from support.books import close_books
from support.customer import Customer
from support.scale import Scale
from support.task_functions import slowly_square
from system.fleet import Fleet
from system.holders import Holders
from system.site import Site

KILL_S = 1.0


def test_g01_killed_workers_lose_no_task(tmp_path: Path, scale: Scale, reached: Callable[[str], None]) -> None:
    workers, tasks, least_kills, most_kills, lease_s = scale((3, 200, 2, 40, 1.5), (8, 10_000, 60, 600, 6.0))
    with Site(tmp_path / "site", lease_s=lease_s) as site, Fleet(site, workers, executors=1) as fleet:
        customer = Customer(site, "unlucky")
        with ThreadPoolExecutor(1) as reading, customer.pool() as pool:
            results = pool.map(slowly_square, range(tasks))
            assert results.package_id is not None
            closing = reading.submit(close_books, site, customer.token, results.package_id)
            while not wait([closing], timeout=KILL_S).done:
                assert len(fleet.former) < most_kills, "it does not end"
                fleet.lose()
                fleet.start()
            books = closing.result()
            assert list(results) == [number**2 for number in range(tasks)]
        customer.assert_charged_once(books, tasks)
        assert (books.last.state, books.last.progress.errors) == ("completed", 0)
        kills = len(fleet.former)
        assert [member.wait() for member in fleet.former] == [-signal.SIGKILL] * kills
        again = len(Holders(fleet.died_s).take(site.journal()).rescues)
        charged_us = customer.account().spent_us
    assert kills >= least_kills
    assert again > 0, "no killed worker had a task"
    reached(
        f"{kills} times kill -9 of one of {workers} worker processes, one a second, {tasks:,} tasks: 0 lost, "
        f"{again:,} handed out again, 0 second commits, charged {charged_us} us = sum of the committed execution times"
    )
