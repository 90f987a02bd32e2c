import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cloudpar_master.core.head import Member
from cloudpar_master.core.pacing import (
    CALL_S,
    POLLS_PER_S,
    SHORTEST_AWAIT_S,
    SHORTEST_COLLECTION_US,
    WORKER_BOUNDS_S,
    beat_s,
    client_delay_s,
    collect_us,
    pause_s,
    task_end_s,
    worker_delay_s,
)
from cloudpar_master.core.policy import Policy
from master.core.folds import NOW, POLICY, running
from support.heads import altered

QUOTA_US = 10**12


def test_a_client_waits_a_tenth_of_the_time_that_is_left() -> None:
    head = altered(running(), mean_us=2e6, done=80, fleet={1: Member(4, NOW)})
    assert client_delay_s(head, NOW + 60, POLICY) == 20 * 2 / 4 / 10


def test_a_task_of_an_unmeasured_package_counts_as_a_second() -> None:
    assert client_delay_s(altered(running(), done=90), NOW + 60, POLICY) == 1.0


def test_the_age_of_a_young_package_bounds_its_clients_delay() -> None:
    head = altered(running(), mean_us=1e9)
    assert [client_delay_s(head, NOW + age_s, POLICY) for age_s in (-1, 0, 1, 4, 60)] == [0.2, 0.2, 0.7, 2.2, 5.0]


def test_a_client_waits_for_the_longest_time_that_the_policy_permits() -> None:
    head = altered(running(), mean_us=1e9)
    assert client_delay_s(head, NOW + 600, Policy(longest_await_s=30.0)) == 30.0


def test_results_are_collected_for_longer_where_chunks_are_long() -> None:
    head = running()
    cloud = Policy(chunk_target_us=10_000_000, longest_chunk_us=30_000_000)
    large = altered(head, fleet={number: Member(4, NOW) for number in range(25)})
    assert collect_us(4, head, QUOTA_US, POLICY) == collect_us(1, large, QUOTA_US, POLICY) == SHORTEST_COLLECTION_US
    assert collect_us(1, head, QUOTA_US, cloud) == 10_000_000
    assert collect_us(4, large, 3 * 750_000_000 - 1, cloud) == SHORTEST_COLLECTION_US
    assert collect_us(4, large, QUOTA_US, cloud) == 30_000_000 // 4


def test_results_are_collected_for_longer_only_while_the_quota_lasts_for_three_chunks_of_each_executor() -> None:
    """The worker counts, too, before it has published: the head does not know its executors yet."""
    cloud = Policy(chunk_target_us=10_000_000, longest_chunk_us=30_000_000)
    assert collect_us(4, running(), 30_000_000, cloud) == 2_500_000
    assert collect_us(4, running(), 29_999_999, cloud) == SHORTEST_COLLECTION_US


SHARED = Policy(chunk_target_us=10_000_000, longest_chunk_us=120_000_000, shares_chunks=True)


def test_a_worker_that_shares_chunks_among_its_executors_collects_results_for_the_whole_chunk() -> None:
    head = altered(running(tasks=10**6), mean_us=1e6, measured=9, fleet={1: Member(4, NOW)})
    large = altered(head, fleet={number: Member(4, NOW) for number in range(25)})
    assert (collect_us(4, head, QUOTA_US, SHARED), collect_us(4, large, QUOTA_US, SHARED)) == (20_000_000, 120_000_000)


def test_results_are_collected_for_a_third_of_the_time_that_is_left() -> None:
    head = altered(running(tasks=100), mean_us=1e6, measured=9, done=64, fleet={1: Member(4, NOW)})
    assert collect_us(4, head, QUOTA_US, SHARED) == 3_000_000


def test_results_are_collected_for_a_third_of_the_time_that_the_quota_pays_for() -> None:
    head = altered(running(tasks=10**6), mean_us=1e6, measured=9, fleet={1: Member(4, NOW)})
    assert [collect_us(executors, head, 12_000_000, SHARED) for executors in (2, 4, 8)] == [
        1_000_000,
        1_000_000,
        500_000,
    ]
    assert collect_us(4, head, 0, SHARED) == SHORTEST_COLLECTION_US


def test_a_worker_collects_for_its_part_of_a_chunk_while_durations_are_unknown_or_chunks_are_not_shared() -> None:
    cloud = Policy(chunk_target_us=10_000_000, longest_chunk_us=30_000_000)
    last = altered(running(), mean_us=1e6, measured=9, done=99, fleet={1: Member(4, NOW)})
    assert collect_us(4, running(), QUOTA_US, SHARED) == 10_000_000 // 4
    assert collect_us(4, last, QUOTA_US, cloud) == 10_800_000 // 4


def test_one_of_the_workers_that_share_chunks_calls_every_five_seconds() -> None:
    head = running()
    fleet = altered(head, fleet={number: Member(4, NOW) for number in range(3)})
    assert [beat_s(each, SHARED) for each in (head, fleet)] == [CALL_S, 3 * CALL_S]
    assert beat_s(fleet, POLICY) == 0.0


def test_workers_call_more_often_near_the_end_of_a_package() -> None:
    """They learn from the replies that others are idle, and give tasks back."""
    pace: dict[str, Any] = {"mean_us": 1e6, "measured": 9, "fleet": {number: Member(4, NOW) for number in range(25)}}
    heads = [altered(running(tasks=10**6), done=10**6 - left, **pace) for left in (10**6, 4_000, 100)]
    assert [beat_s(head, SHARED) for head in heads] == [25 * CALL_S, 4.0, 2.0]


def test_a_package_that_counts_no_executors_has_one_for_the_time_that_is_left() -> None:
    assert beat_s(altered(running(tasks=100), done=70, mean_us=1e6, measured=9), SHARED) == 3.0


def test_all_idle_workers_together_send_a_fixed_number_of_requests_a_second() -> None:
    assert [workers / worker_delay_s(workers) for workers in (2, 40, 200)] == [POLLS_PER_S] * 3


@given(st.integers(0, 100), st.floats(0, 1e13), st.integers(1, 10_000), st.floats(-1e6, 1e6))
def test_a_clients_delay_is_bounded(done: int, mean_us: float, executors: int, age_s: float) -> None:
    head = altered(running(), mean_us=mean_us, done=done, fleet={1: Member(executors, NOW)})
    assert SHORTEST_AWAIT_S <= client_delay_s(head, NOW + age_s, POLICY) <= POLICY.longest_await_s


@given(st.integers(1, 1_000_000))
def test_idle_workers_together_ask_at_a_bounded_rate(workers: int) -> None:
    delay_s = worker_delay_s(workers)
    assert WORKER_BOUNDS_S[0] <= delay_s <= WORKER_BOUNDS_S[1]
    assert delay_s == WORKER_BOUNDS_S[1] or workers / delay_s <= POLLS_PER_S + 1e-9


PAUSING = replace(POLICY, fold_pause_s=0.5, many_workers=3)


def test_a_package_that_has_had_many_workers_pauses_until_it_ends() -> None:
    fleet = {1: Member(4, NOW)}
    assert pause_s(altered(running(), fleet=fleet), PAUSING) == 0
    head = altered(running(), fleet=fleet, pauses=True)
    assert pause_s(head, PAUSING) == 0.5
    assert pause_s(head, POLICY) == 0
    assert pause_s(altered(head, state="cancelled"), PAUSING) == 0


def test_the_pause_is_in_proportion_to_a_large_fleet() -> None:
    pauses = [
        pause_s(altered(running(), fleet={each: Member(4, NOW) for each in range(workers)}, pauses=True), PAUSING)
        for workers in (150, 225, 300)
    ]
    assert pauses == [0.5, 0.75, 1.0]


def test_tasks_end_as_often_as_executors_and_unfinished_tasks_permit() -> None:
    head = altered(running(), mean_us=2e6, measured=1, done=80, fleet={1: Member(8, NOW)})
    assert task_end_s(head) == 2 / 8
    assert task_end_s(altered(head, done=96)) == 2 / 4
    assert task_end_s(altered(head, done=99)) == 2
    for unknown in altered(head, measured=0), altered(head, done=100), altered(head, fleet={}):
        assert task_end_s(unknown) == math.inf
