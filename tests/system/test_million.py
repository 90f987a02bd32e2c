"""Many tasks over a range: the master's memory does not depend on their number."""

from bench.memory import peak_mb

from support.up import Up

TASKS = 200_000
"""The bench runs a million tasks."""

LIMIT_MB = 150


def test_the_masters_memory_stays(cluster: Up) -> None:
    with cluster.pool() as pool:
        assert sum(pool.map(abs, range(TASKS))) == TASKS * (TASKS - 1) // 2
        assert peak_mb(cluster.child("cloudpar_master").pid) < LIMIT_MB
