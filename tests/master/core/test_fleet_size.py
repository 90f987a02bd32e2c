"""A fleet gets as many hosts as its work needs: what is left to do, and not what is in the queue."""

from typing import Any

import pytest

from cloudpar_master.core.fleet_size import BOOT_US, UNREAD, HostShape, Work, hosts_needed, work_of
from cloudpar_master.core.head import Head, OpenRange
from cloudpar_master.core.policy import Policy
from support import heads

POLICY = Policy(first_window=1)
PAIR = HostShape(executors=2, chunks_per_executor=2)
HUGE = HostShape(executors=32, chunks_per_executor=2)


def head(tasks: int, **fields: Any) -> Head:
    return heads.make_head("p", "a", tasks, 0.0, **fields)


def hosts(*found: Head, shape: HostShape = PAIR) -> int:
    return hosts_needed([work_of(each, POLICY) for each in found], shape)


def opened(count: int) -> list[OpenRange]:
    return [OpenRange(number, number + 1, 1, sent=True) for number in range(count)]


def test_one_chunk_needs_one_host() -> None:
    assert hosts(head(1, open=opened(1), cursor=1)) == 1


def test_no_package_needs_no_host() -> None:
    assert hosts() == 0


@pytest.mark.parametrize(("chunks", "expected"), [(4, 1), (5, 2), (32, 8)])
def test_chunks_of_unknown_duration_need_an_executor_for_so_many(chunks: int, expected: int) -> None:
    assert hosts(head(100_000, open=opened(chunks), cursor=chunks, window=chunks)) == expected


def test_a_new_package_counts_with_the_chunks_that_its_window_permits() -> None:
    assert work_of(head(100_000, window=32), POLICY) == Work(100_000, None, 32)
    assert work_of(head(3, window=32), POLICY) == Work(3, None, 3)


def test_a_new_package_counts_with_the_chunks_that_idle_executors_would_get() -> None:
    """Its first window may be smaller, because others may be before it in the queue. A closed package has no window."""
    policy = Policy(first_window=32)
    assert work_of(head(100, window=4), policy) == Work(100, None, 32)
    assert work_of(head(100, window=0), policy) == Work(100, None, 0)


def test_measured_tasks_need_hosts_for_their_time_and_not_for_their_chunks() -> None:
    short = head(100_000, open=opened(400), cursor=400, measured=50, mean_us=1_000.0)
    assert hosts(short) == 1
    long = head(100_000, open=opened(4), cursor=4, measured=50, mean_us=1_000_000.0)
    assert hosts(long, shape=HUGE) == -(-100_000 * 1_000_000 // BOOT_US // 32) == 27


def test_tasks_that_workers_hold_ahead_count() -> None:
    """Workers hold all open chunks, so the queue is empty. The other tasks are in no chunk yet."""
    assert hosts(head(10_000, open=opened(4), cursor=4, measured=50, mean_us=1_000_000.0)) > 40


def test_there_are_no_more_executors_than_tasks() -> None:
    assert hosts(head(5, open=opened(3), cursor=5, measured=2, mean_us=3_600e6)) == 2


def test_chunks_that_the_client_has_sized_count_as_one_part_each() -> None:
    assert work_of(head(100, chunksize=30, measured=1, mean_us=60e6), POLICY) == Work(4, 100 * 60e6, 4)


def test_an_ended_package_needs_no_host() -> None:
    ended = head(10, open=opened(4), cursor=4, state="cancelled")
    assert work_of(ended, POLICY) == Work(parts=0, total_us=0.0, chunks=0)
    assert hosts(ended) == 0


def test_packages_whose_heads_were_not_read_count_as_one_chunk_each() -> None:
    assert hosts_needed([UNREAD] * 2, HostShape(executors=1, chunks_per_executor=2)) == 1
    assert hosts_needed([UNREAD] * 3, HostShape(executors=1, chunks_per_executor=2)) == 2


def test_tasks_of_an_account_without_compute_time_need_no_host() -> None:
    assert hosts(head(10, ask_again_at=60.0)) == 0
    assert hosts(head(10, ask_again_at=60.0, open=opened(4), cursor=4)) == 1


def test_tasks_that_no_worker_has_need_no_host_when_they_are_cancelled() -> None:
    assert hosts(head(10, draining=True)) == 0


def test_packages_that_wait_for_others_need_one_host_together() -> None:
    """An account with 500 closed packages has other packages at work. Without any host, these might never open."""
    assert hosts(*[head(10, window=0)] * 500) == 1


def test_small_packages_share_a_host() -> None:
    short = head(600, measured=10, mean_us=100_000.0)
    assert hosts(*[short] * 4) == 1
    assert hosts(*[short] * 5) == 2
