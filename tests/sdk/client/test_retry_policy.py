from cloudpar._client.retry_policy import Attempts, RetryPolicy


def test_first_contact_is_given_up_within_ten_seconds() -> None:
    patience = RetryPolicy(300.0)
    tries = Attempts(patience, 30.0, None, now=0.0)
    now = 0.0
    while (delay_s := tries.failed(now)) is not None:
        now += delay_s + 0.5 * tries.timeout_s(now + delay_s)
    assert 3.0 < now + tries.timeout_s(now) < 10.0


def test_a_server_that_accepts_and_never_answers_is_given_up() -> None:
    assert Attempts(RetryPolicy(300.0), 30.0, None, now=5.0).timeout_s(5.0) == 8.0


def test_the_patience_with_a_known_master_counts_from_its_failure() -> None:
    patience = RetryPolicy(300.0, met=True)
    tries = Attempts(patience, 30.0, None, now=0.0)
    now = 25.0  # the first try itself took long, which is no absence
    count = 0
    while (delay_s := tries.failed(now)) is not None:
        now += delay_s
        count += 1
    assert 290.0 < now - 25.0 <= 300.0
    assert count < 100


def test_a_master_that_asks_to_wait_is_never_given_up() -> None:
    tries = Attempts(RetryPolicy(0.5), 30.0, None, now=0.0)
    delays = [tries.paced(1000.0 * number, asked_s=0.5) for number in range(20)]
    assert min(delays) >= 0.5  # not before it said
    assert 5.0 <= delays[-1] <= 6.25  # and ever more seldom
    patience = RetryPolicy(300.0, met=True)
    tries = Attempts(patience, 30.0, None, now=0.0)
    tries.paced(400.0)
    assert tries.failed(500.0) is not None  # its absence counts from here


def test_a_long_wait_is_reported_at_most_once_a_minute() -> None:
    patience = RetryPolicy(300.0, met=True)
    assert [patience.paced(0.0, now) for now in (0.0, 4.0, 6.0, 10.0, 70.0)] == [False, False, True, False, True]


def test_an_absence_causes_one_warning_and_its_end_is_reported() -> None:
    patience = RetryPolicy(300.0, met=True)
    assert [patience.failed(now) for now in (0.0, 0.5, 1.5, 2.0, 60.0)] == [False, False, True, False, False]
    assert patience.answered(61.0) == 61.0
    assert patience.answered(62.0) is None
    assert [patience.failed(now) for now in (70.0, 72.0)] == [False, True]


def test_a_short_absence_is_not_reported() -> None:
    patience = RetryPolicy(300.0, met=True)
    assert not patience.failed(0.0)
    assert patience.answered(0.2) is None


def test_a_master_that_never_answered_is_not_reported_as_away() -> None:
    patience = RetryPolicy(300.0)
    assert not patience.failed(0.0)
    assert not patience.failed(5.0)
    assert patience.answered(6.0) is None
    assert patience.met
