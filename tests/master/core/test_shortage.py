"""A fleet that stays short of working hosts pauses, each time for longer, until a further host works."""

from itertools import pairwise

import pytest

from cloudpar_master.core.shortage import NO_SHORTAGE, PAUSES_S, SHORT_S, Shortage, looked


def after(before: Shortage, now: float, working: int = 0, expected: int = 2, template: str = "v1") -> Shortage:
    return looked(before, now, working, expected, template)


@pytest.fixture
def paused() -> Shortage:
    return after(after(NO_SHORTAGE, 0.0), SHORT_S)


def test_pauses_double_up_to_the_longest_one() -> None:
    pauses: list[float] = []
    shortage = NO_SHORTAGE
    for now in range(0, 20_000, 60):
        looks = after(shortage, now)
        if looks.pauses > shortage.pauses:
            pauses.append(looks.resumes_at - now)
        shortage = looks
    shortest_s, longest_s = PAUSES_S
    assert pauses[0] == shortest_s
    assert pauses[-1] == longest_s
    assert all(later == min(2 * earlier, longest_s) for earlier, later in pairwise(pauses))


def test_a_fleet_that_was_short_for_weeks_pauses_no_longer_than_the_longest_pause() -> None:
    old = Shortage(since=0.0, pauses=10_000, template="v1")
    assert after(old, SHORT_S).resumes_at == SHORT_S + PAUSES_S[1]


def test_a_fleet_without_a_shortage_may_grow_at_any_time() -> None:
    assert (NO_SHORTAGE.resumes_at, after(NO_SHORTAGE, 1e9).resumes_at) == (0.0, 0.0)


def test_hosts_that_start_after_a_pause_get_the_full_time(paused: Shortage) -> None:
    resumes_at = paused.resumes_at
    assert after(paused, resumes_at + SHORT_S - 1).pauses == 1
    assert after(paused, resumes_at + SHORT_S).pauses == 2


def test_enough_working_hosts_end_the_shortage(paused: Shortage) -> None:
    assert after(paused, SHORT_S + 1, working=2) == NO_SHORTAGE
    assert after(paused, SHORT_S + 1, expected=0) == NO_SHORTAGE


def test_a_further_working_host_ends_the_pause(paused: Shortage) -> None:
    assert after(paused, SHORT_S + 1, working=1) == Shortage(since=SHORT_S + 1, working=1, template="v1")


def test_a_host_that_stops_working_does_not_end_the_pause() -> None:
    paused = after(after(NO_SHORTAGE, 0.0, working=1), SHORT_S, working=1)
    fewer = after(paused, SHORT_S + 1)
    assert (fewer.pauses, fewer.resumes_at, fewer.working) == (1, paused.resumes_at, 0)


def test_a_new_template_ends_the_pause(paused: Shortage) -> None:
    assert after(paused, SHORT_S + 1, template="v2") == Shortage(since=SHORT_S + 1, template="v2")
