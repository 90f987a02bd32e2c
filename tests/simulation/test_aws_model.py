"""The model of large deployments on AWS (bench.aws_model), with small ones."""

from typing import Any

from bench.aws_model.__main__ import LOADS
from bench.aws_model.limits import LIMITS, PARTITION_WRITES
from bench.aws_model.meter import Partition
from bench.aws_model.scenario import Figures, Load, Run

S = 1_000_000


def run(**changes: Any) -> Figures:
    load = Load("small", executors=64, on_host=8, task_us=2 * S, seconds=40)
    return Run(load._replace(**changes), lambda _: None).to_the_end()


def test_hosts_that_wait_are_busy_until_the_tasks_end() -> None:
    found = run()
    assert found.busy > 0.9
    assert found.load.seconds <= found.seconds < 2 * found.load.seconds
    assert found.line[-1][1:] == (0, found.load.tasks)
    assert set(found.peaks) == {limit.name for limit in LIMITS}
    assert all(found.peaks.values())
    assert found.waited_s == 0


def test_several_packages_share_the_hosts() -> None:
    assert run(packages=4).busy > 0.9


def test_hosts_are_started_for_the_work() -> None:
    found = run(boots=True, executors=32, seconds=120)
    assert 90 < found.first_s <= found.last_s < 240
    assert max(busy for _, busy, _ in found.line) == 32


def test_writes_beyond_the_limit_of_a_partition_wait() -> None:
    partition = Partition(PARTITION_WRITES)
    assert partition.wait_us(PARTITION_WRITES, now_us=5 * S, patience_us=S) == 0
    assert partition.wait_us(PARTITION_WRITES, now_us=5 * S, patience_us=S) == S
    assert partition.wait_us(1, now_us=5 * S, patience_us=S) is None
    assert (partition.wait_us(1, now_us=7 * S, patience_us=S), partition.refused) == (0, 1)


def test_each_load_has_a_name_of_its_own() -> None:
    assert len({load.name for load in LOADS}) == len(LOADS)
