"""Tasks stop when the quota is used up: end to end, with real time."""

from pathlib import Path

import pytest

from cloudpar.errors import PackageFailed, QuotaExhausted, TaskQuotaExceeded
from support.books import close_books
from support.command import cloudpar_json
from support.customer import Customer
from support.task_functions import ten_milliseconds
from support.up import Up

GRANTED_US = 300_000
OVERRUN_TASKS = 2 * (200_000 // 10_000 + 1)
"""What two executors start in a publishing interval, and the task that each was running."""


def test_a_package_that_crosses_the_quota_fails_and_its_tasks_stop(cluster: Up, tmp_path: Path) -> None:
    customer = Customer(cluster, "crosses", quota="300ms")

    def leave_a_mark(number: int) -> int:
        (tmp_path / str(number)).touch()
        return ten_milliseconds(number)

    with customer.pool() as pool:
        results = pool.map(leave_a_mark, range(10_000))
        with pytest.raises((PackageFailed, TaskQuotaExceeded), match=r"compute time|quota"):
            list(results)
        assert results.package_id is not None
        books = close_books(cluster, customer.token, results.package_id)
        assert (books.last.state, books.last.reason) == ("failed", "quota")
        assert books.last.message is not None
        assert "grant" in books.last.message  # the fix
        assert customer.account().spent_us == books.last.progress.charged_us == GRANTED_US
        with pytest.raises(QuotaExhausted, match="grant"):
            pool.map(leave_a_mark, range(10_000, 10_010))
        cloudpar_json("account", "grant", customer.account_id, "1h", *cluster.admin())
        assert list(pool.map(ten_milliseconds, range(10))) == list(range(10))
    # The executors' running tasks when the quota was used up, and those that started until the agent knew it.
    charged = sum(result.duration_us > 0 for result in books.results)
    assert 0 < charged <= len(list(tmp_path.iterdir())) <= GRANTED_US // 10_000 + OVERRUN_TASKS
