"""Tasks that never end are stopped at their time limit and charged, their error says so, and later tasks run.

A stopped task leaves no processes: neither its own nor those that it started.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from cloudpar.errors import TaskTimeout
from support.books import close_books
from support.customer import Customer
from support.waiting import until
from system.endless import Note, busy_loop, hang_in_c, ignore_signals, swallow_exceptions, with_child
from system.fleet import Fleet
from system.site import Site

LIMIT_S = 1.2
"""Long enough that no other task reaches it on a busy machine."""
LATE_S = 2.0
"""How late the agent may stop a task. It wakes up for the limit, so only a stalled machine makes it later than this."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Start a master and a worker with two executors for all tests of this file."""
    with Site(tmp_path_factory.mktemp("site")) as site, Fleet(site, 1, executors=2):
        yield site


def is_gone(pid: int) -> bool:
    """Whether a process has ended. It may be a zombie whose new parent has not read its status yet."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize("hang", [busy_loop, hang_in_c, ignore_signals, swallow_exceptions, with_child])
def test_g16_an_endless_task_is_stopped_at_its_time_limit(
    site: Site, hang: Callable[[Note], None], tmp_path: Path, reached: Callable[[str], None]
) -> None:
    customer = Customer(site, hang.__name__)

    def note(pid: int) -> None:
        (tmp_path / str(pid)).touch()

    def sometimes(number: int) -> int:
        if number % 4 == 3:
            note(os.getpid())
            hang(note)
        return number

    with customer.pool() as pool:
        results = pool.map(sometimes, range(12), task_timeout_s=LIMIT_S)
        assert results.package_id is not None
        books = close_books(site, customer.token, results.package_id)
        for number in range(12):
            if number % 4 == 3:
                with pytest.raises(TaskTimeout, match=rf"time limit of {LIMIT_S} s and was stopped"):
                    next(results)
            else:
                assert next(results) == number
    pids = [int(path.name) for path in tmp_path.iterdir()]
    assert len(pids) >= (4 if hang is with_child else 3)  # the limit may come before that task has started its child
    until(lambda: all(map(is_gone, pids)), LATE_S)
    customer.assert_charged_once(books, 12)
    stopped_us = [result.duration_us for result in books.results if result.outcome == "timeout"]
    assert len(stopped_us) == 3
    assert all(LIMIT_S * 1e6 <= each <= (LIMIT_S + LATE_S) * 1e6 for each in stopped_us)
    late_ms = max(stopped_us) / 1e3 - LIMIT_S * 1e3
    reached(
        f"{hang.__name__}: stopped at its limit of {LIMIT_S} s (at most {late_ms:.0f} ms late), "
        f"{len(pids)} processes gone, charged, says so"
    )
