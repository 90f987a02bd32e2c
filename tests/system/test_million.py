"""Many tasks over a range: the master's memory does not depend on their number."""

import re
from pathlib import Path

from cli.operation import Up
from system.books import Customer, close_books

TASKS = 200_000
"""The bench runs a million tasks."""

LIMIT_MB = 150


def peak_mb(pid: int) -> float:
    found = re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def test_the_masters_memory_stays(cluster: Up) -> None:
    customer = Customer(cluster, "many")
    with customer.pool() as pool:
        assert sum(pool.map(abs, range(TASKS))) == TASKS * (TASKS - 1) // 2
        assert peak_mb(cluster.child("cloudpar_master").pid) < LIMIT_MB


def test_a_long_package_is_charged_once_like_a_short_one(cluster: Up) -> None:
    customer = Customer(cluster, "more")
    with customer.pool() as pool:
        results = pool.map(abs, range(TASKS // 10))
        assert results.package_id is not None
        books = close_books(cluster, customer.token, results.package_id)
        assert list(results) == list(range(TASKS // 10))
    customer.assert_charged_once(books, TASKS // 10)
