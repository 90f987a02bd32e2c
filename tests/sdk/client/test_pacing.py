import pytest

from cloudpar._client.pacing import LONGEST_S, gather_s, remaining_s
from cloudpar_protocol.client_messages import Progress


def done(tasks: int) -> Progress:
    return Progress(tasks=500, done=tasks, mean_us=20_000, executors=2)


def test_without_known_durations_there_is_no_pause() -> None:
    assert gather_s(done(0), 100.0) == 0.0
    assert remaining_s(Progress(tasks=5)) is None


def test_the_pause_in_the_middle_of_a_long_package_is_the_longest() -> None:
    assert gather_s(done(250), 100.0) == LONGEST_S


def test_a_pause_is_at_most_a_share_of_the_elapsed_and_the_remaining_time() -> None:
    assert gather_s(done(250), 1.0) == pytest.approx(0.05)
    assert gather_s(done(490), 100.0) == pytest.approx(0.03)


def test_a_package_is_asked_about_a_bounded_number_of_times() -> None:
    now, asked = 0.1, 0
    while now < 5.0:
        pause_s = gather_s(done(int(now * 100)), now)
        now += max(pause_s, 0.004)  # without a pause, news come with every task or two
        asked += 1
    assert asked < 120
