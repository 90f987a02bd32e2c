import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cloudpar_master.core.head import Head, Member, OpenRange, Pace
from cloudpar_master.core.planning import (
    SHORT_WAIT_US,
    UNMEASURED_CHUNK,
    chunk_size,
    chunk_target_us,
    crew_of,
    express_until,
    first_window,
    largest_window,
    next_window,
    places_of,
)
from cloudpar_master.core.policy import Policy
from master.core.folds import running
from support.heads import altered

POLICY = Policy()
CLOUD = Policy(chunk_target_us=10_000_000, longest_chunk_us=30_000_000, first_window=32)
counts = st.integers(1, 10_000_000)


def pace(mean_us: float, executors: int, window: int) -> Pace:
    """Return the pace of tasks of this mean duration; 0: none is measured."""
    return Pace(mean_us=mean_us, measured=int(mean_us > 0), fleet={1: Member(executors, 0.0)}, window=window)


@given(counts, counts, st.just(0.0) | st.floats(1.0, 1e13), st.integers(0, 640_000), st.integers(1, 400))
def test_a_chunk_has_at_least_one_task_and_no_more_than_there_are(
    uncut: int, tasks: int, mean_us: float, executors: int, window: int
) -> None:
    assert 1 <= chunk_size(uncut, tasks, pace(mean_us, executors, window), POLICY) <= uncut


@given(counts, st.floats(1.0, 1e9), st.integers(0, 1_000), st.integers(1, 400))
def test_a_chunk_lasts_at_most_the_target_or_one_task(uncut: int, mean_us: float, executors: int, window: int) -> None:
    for policy in (POLICY, CLOUD):
        size = chunk_size(uncut, uncut, pace(mean_us, executors, window), policy)
        target_us = chunk_target_us(executors, policy)
        assert policy.chunk_target_us <= target_us <= policy.longest_chunk_us
        assert size == 1 or size * mean_us <= target_us + mean_us


def test_few_executors_have_short_chunks_in_a_large_window() -> None:
    """The first window has 32 chunks, and then two executors report how long the tasks are."""
    size = chunk_size(10**6, 10**6, pace(10_000.0, 2, 32), CLOUD)
    assert size * 10_000 == 1_950_000
    assert chunk_size(10**6, 10**6, pace(10_000.0, 2, 4), CLOUD) * 10_000 == 10_400_000


def test_unmeasured_chunks_are_few_tasks_each() -> None:
    assert chunk_size(1_000_000, 1_000_000, pace(0.0, 2, 8), POLICY) == UNMEASURED_CHUNK


def test_an_unmeasured_package_of_few_tasks_is_spread() -> None:
    assert chunk_size(100, 100, pace(0.0, 0, 8), POLICY) == 1


def test_chunks_shrink_towards_the_end() -> None:
    sizes, uncut = [], 1_000
    while uncut:
        sizes.append(chunk_size(uncut, 1_000, pace(1_000.0, 4, 6), POLICY))
        uncut -= sizes[-1]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == 125
    assert sizes[-1] <= 10


def test_the_last_chunks_are_worth_their_calls() -> None:
    assert [chunk_size(uncut, 1_000, pace(100.0, 100, 8), POLICY) for uncut in (40, 400)] == [40, 100]


@pytest.mark.parametrize(("wait_us", "window"), [(0, 10), (49_999, 10), (50_000, 8), (400_000, 8), (400_001, 4)])
def test_the_window_follows_the_wait_in_the_queue(wait_us: int, window: int) -> None:
    assert next_window(8, wait_us, 2, POLICY) == window


def test_the_window_doubles_until_the_executors_are_busy() -> None:
    assert [next_window(8, 0, executors, POLICY) for executors in (1, 6, 7, 100)] == [9, 14, 16, 16]


def test_the_window_always_has_a_chunk_for_each_executor_and_two_more() -> None:
    assert next_window(8, 10**9, 10, POLICY) == 12


def test_chunks_wait_in_the_queue_for_a_short_time_even_if_they_are_long() -> None:
    assert [next_window(32, wait_us, 2, CLOUD) for wait_us in (499_999, 500_000, 2_000_000, 2_000_001)] == [
        34,
        32,
        32,
        16,
    ]


def test_a_small_package_opens_all_its_tasks_at_once() -> None:
    assert [first_window(tasks, POLICY) for tasks in (1, 9, 32, 33, 10**6)] == [8, 9, 32, 8, 8]


@given(st.integers(1, 400), st.integers(0, 10**12), st.integers(0, 640_000))
def test_the_window_keeps_its_bounds(window: int, wait_us: int, executors: int) -> None:
    assert 1 <= next_window(window, wait_us, executors, POLICY) <= largest_window(executors, POLICY)


def test_a_target_above_the_longest_chunk_counts_nevertheless() -> None:
    """An operator may set the target alone."""
    assert chunk_target_us(1, Policy(chunk_target_us=5_000_000)) == 5_000_000


def test_an_unmeasured_package_has_sixteen_chunks_for_each_of_its_first_window() -> None:
    assert chunk_size(1_280, 1_280, pace(0.0, 0, 8), POLICY) == 10


@pytest.mark.parametrize(("most_executors", "size"), [(0, 10), (1, 10), (5, 2), (20, 1)])
def test_unmeasured_chunks_leave_two_for_each_executor_that_the_package_has_had(most_executors: int, size: int) -> None:
    assert chunk_size(20, 10**6, Pace(window=8, most_executors=most_executors), POLICY) == size


def test_a_single_executor_gets_half_of_the_rest() -> None:
    assert chunk_size(10, 100, pace(10_000.0, 1, 8), POLICY) == 5


def test_a_large_window_does_not_shorten_chunks_that_wait_only_for_a_short_time() -> None:
    policy = Policy(chunk_target_us=SHORT_WAIT_US, longest_chunk_us=SHORT_WAIT_US)
    assert chunk_size(10**6, 10**6, pace(10_000.0, 2, 400), policy) == 50


def test_the_largest_window_grows_in_proportion_to_a_large_fleet() -> None:
    assert [largest_window(executors, POLICY) for executors in (0, 250, 500, 1_000)] == [400, 400, 800, 1_600]


@pytest.mark.parametrize(("executors", "grown"), [(0, 301), (2, 302), (20, 308), (160, 320)])
def test_a_window_that_keeps_the_executors_busy_grows_slowly(executors: int, grown: int) -> None:
    assert next_window(300, 0, executors, POLICY) == grown


def test_the_window_stays_as_large_as_the_most_executors_of_the_package_permitted() -> None:
    """Workers of a large fleet may stop publishing for a while, because their tasks last long."""
    assert next_window(400, 0, 2, POLICY) == 400
    assert next_window(1_000, 100_000, 2, POLICY, most_executors=1_000) == 1_000
    assert next_window(1_000, 100_000, 1_000, POLICY, most_executors=2) == 1_000


SHARED = Policy(chunk_target_us=10_000_000, longest_chunk_us=120_000_000, shares_chunks=True, first_window=32)


def crews(mean_us: float, *executors: int, window: int = 6) -> Pace:
    """Return the pace of a package whose workers have these numbers of executors."""
    fleet = {number: Member(each, 0.0) for number, each in enumerate(executors)}
    return Pace(mean_us=mean_us, measured=int(mean_us > 0), fleet=fleet, window=window, execute_us=10**12)


def test_the_shared_chunks_of_a_young_package_are_short() -> None:
    """Most of its workers may not have published yet."""
    young = [replace(crews(1e6, 4, 4), execute_us=execute_us) for execute_us in (0, 10**7, 4 * 10**7, 8 * 10**7)]
    assert [chunk_size(10**6, 10**6, pace, SHARED) for pace in young] == [20, 20, 80, 120]
    assert chunk_size(10**6, 10**6, replace(crews(1e6, 1), execute_us=4 * 10**6), SHARED) == 12


def test_a_shared_chunk_keeps_all_executors_of_a_worker_busy_for_the_target_time() -> None:
    assert chunk_size(10**6, 10**6, crews(1e6, 4, 4, 4, 4), SHARED) == 4 * 50
    assert chunk_size(10**6, 10**6, crews(1e6, *[4] * 25, window=27), SHARED) == 4 * 120


def test_a_shared_chunk_is_for_the_smallest_worker() -> None:
    """A chunk for a large worker would keep a small one busy for much longer than the rest of the fleet."""
    fleet = crews(1e6, 16, 4, window=7)
    assert (crew_of(fleet, SHARED), places_of(fleet, SHARED)) == (4, 5)
    assert chunk_size(10**6, 10**6, fleet, SHARED) == 4 * 60


def test_tasks_that_outlast_a_shared_chunk_are_alone_in_their_chunks() -> None:
    fleet = crews(3.6e9, 4, 4)
    assert (crew_of(fleet, SHARED), places_of(fleet, SHARED)) == (1, 8)
    assert chunk_size(10**6, 10**6, fleet, SHARED) == 1


def test_a_shared_chunk_takes_at_most_half_of_a_workers_share_of_the_rest() -> None:
    assert [chunk_size(uncut, 1_000, crews(1e7, 4, 4, 4, 4), SHARED) for uncut in (64, 32, 8, 3)] == [8, 4, 1, 1]


def test_where_chunks_are_shared_the_window_always_has_a_chunk_for_each_crew_and_one_more() -> None:
    assert next_window(8, 10**9, 10, SHARED) == 11


def test_a_share_of_the_rest_counts_workers_that_have_only_requested_chunks() -> None:
    known = replace(crews(1e6, 4), most_executors=40)
    assert [chunk_size(100, 200, pace, SHARED) for pace in (crews(1e6, 4), known)] == [50, 5]


def test_a_shared_chunk_of_long_tasks_is_for_as_many_executors_as_it_has_tasks() -> None:
    assert [crew_of(crews(mean_us, 4, 4), SHARED) for mean_us in (3e7, 4e7, 6e7, 12e7)] == [4, 3, 2, 1]


def test_a_chunk_is_for_one_executor_if_a_worker_has_no_more() -> None:
    assert [crew_of(crews(1e6, executors, 4), SHARED) for executors in (0, 1, 2)] == [1, 1, 2]


def test_where_chunks_are_shared_a_package_that_may_be_short_starts_with_its_express_chunks() -> None:
    assert [first_window(tasks, SHARED) for tasks in (1, 4, 5, 512, 513)] == [1, 4, 4, 4, 32]


def left(opened: int, uncut: int, mean_us: float = 1e6) -> Head:
    """Return a package with this many tasks in a chunk, and this many in none. A full chunk of SHARED lasts 10 s."""
    cursor = 10**6 - uncut
    chunks = [OpenRange(cursor - opened, cursor, 2)]
    return altered(running(tasks=10**6), open=chunks, cursor=cursor, mean_us=mean_us, measured=int(mean_us > 0))


def all_are_express(head: Head, policy: Policy = SHARED) -> bool:
    return express_until(head, policy) == head.tasks.count


def test_only_the_first_four_tasks_of_a_long_package_are_express() -> None:
    for mean_us in (0.0, 1e6):
        assert express_until(left(opened=10, uncut=10**5, mean_us=mean_us), SHARED) == 4


def test_the_last_tasks_of_a_package_are_express_as_soon_as_they_would_fill_one_chunk() -> None:
    assert [all_are_express(left(opened, uncut=6)) for opened in (4, 5)] == [True, False]
    assert [all_are_express(left(0, uncut)) for uncut in (10, 11)] == [True, False]


def test_a_task_without_a_measurable_duration_counts_as_a_microsecond() -> None:
    heads = [altered(left(0, uncut), mean_us=0.0) for uncut in (10, 11)]
    assert [all_are_express(head, replace(SHARED, chunk_target_us=10)) for head in heads] == [True, False]


def test_the_last_chunk_of_a_fleet_that_shares_chunks_is_for_all_executors_of_a_worker() -> None:
    heads = [altered(left(0, uncut), fleet={1: Member(4, 0.0)}) for uncut in (40, 41)]
    assert [all_are_express(head) for head in heads] == [True, False]


def test_chunks_are_not_shared_while_their_duration_is_unknown() -> None:
    assert crew_of(crews(0.0, 4, 4), SHARED) == crew_of(Pace(mean_us=1.0, measured=1, window=8), SHARED) == 1


@given(counts, st.floats(1.0, 1e13), st.lists(st.integers(1, 1_000), min_size=1, max_size=50), st.integers(1, 400))
def test_a_shared_chunk_never_lasts_longer_than_the_longest_chunk_or_one_task(
    uncut: int, mean_us: float, executors: list[int], window: int
) -> None:
    fleet = crews(mean_us, *executors, window=window)
    size = chunk_size(uncut, uncut, fleet, SHARED)
    assert 1 <= size <= uncut
    assert size == 1 or size * mean_us <= min(executors) * SHARED.longest_chunk_us + mean_us
    assert places_of(fleet, SHARED) * crew_of(fleet, SHARED) >= fleet.executors
