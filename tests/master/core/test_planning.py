import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudpar_master.core.planning import UNMEASURED_CHUNK, chunk_size, first_window, next_window
from cloudpar_master.core.policy import Policy

POLICY = Policy()
counts = st.integers(1, 10_000_000)


@given(counts, counts, st.just(0.0) | st.floats(1.0, 1e13), st.integers(0, 640_000))
def test_a_chunk_has_at_least_one_task_and_no_more_than_there_are(
    uncut: int, tasks: int, mean_us: float, executors: int
) -> None:
    assert 1 <= chunk_size(uncut, tasks, mean_us, executors, POLICY) <= uncut


@given(counts, st.floats(1.0, 1e9), st.integers(0, 1_000))
def test_a_chunk_lasts_at_most_the_target_or_one_task(uncut: int, mean_us: float, executors: int) -> None:
    size = chunk_size(uncut, uncut, mean_us, executors, POLICY)
    assert size == 1 or size * mean_us <= POLICY.chunk_target_us + mean_us


def test_unmeasured_chunks_are_few_tasks_each() -> None:
    assert chunk_size(1_000_000, 1_000_000, 0.0, 2, POLICY) == UNMEASURED_CHUNK


def test_an_unmeasured_package_of_few_tasks_is_spread() -> None:
    assert chunk_size(100, 100, 0.0, 0, POLICY) == 1


def test_chunks_shrink_towards_the_end() -> None:
    sizes, uncut = [], 1_000
    while uncut:
        sizes.append(chunk_size(uncut, 1_000, 1_000.0, 4, POLICY))
        uncut -= sizes[-1]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == 125
    assert sizes[-1] <= 5


def test_the_last_chunks_are_worth_their_calls() -> None:
    assert chunk_size(40, 1_000, 100.0, 100, POLICY) == 40


@pytest.mark.parametrize(("wait_us", "window"), [(0, 10), (49_999, 10), (50_000, 8), (400_000, 8), (400_001, 4)])
def test_the_window_follows_the_wait_in_the_queue(wait_us: int, window: int) -> None:
    assert next_window(8, wait_us, 2, POLICY) == window


def test_the_window_doubles_until_the_executors_are_busy() -> None:
    assert [next_window(8, 0, executors, POLICY) for executors in (0, 6, 7, 100)] == [9, 14, 16, 16]


def test_the_window_always_has_a_chunk_for_each_executor_and_two_more() -> None:
    assert next_window(8, 10**9, 10, POLICY) == 12


def test_a_small_package_opens_at_once() -> None:
    assert [first_window(tasks, POLICY) for tasks in (1, 9, 32, 33, 10**6)] == [8, 9, 32, 8, 8]


@given(st.integers(1, 400), st.integers(0, 10**12), st.integers(0, 640_000))
def test_the_window_keeps_its_bounds(window: int, wait_us: int, executors: int) -> None:
    assert 1 <= next_window(window, wait_us, executors, POLICY) <= POLICY.largest_window
