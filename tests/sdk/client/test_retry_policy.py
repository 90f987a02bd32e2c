from cloudpar._client.retry_policy import RequestAttempts, RetryPolicy


def test_first_contact_is_given_up_within_ten_seconds() -> None:
    policy = RetryPolicy(300.0)
    attempts = RequestAttempts(policy, 30.0, None, now=0.0)
    now = 0.0
    while (delay_s := attempts.failed(now)) is not None:
        now += delay_s + 0.5 * attempts.timeout_s(now + delay_s)
    assert 3.0 < now + attempts.timeout_s(now) < 10.0


def test_a_server_that_accepts_and_never_answers_is_given_up() -> None:
    assert RequestAttempts(RetryPolicy(300.0), 30.0, None, now=5.0).timeout_s(5.0) == 8.0


def test_the_patience_with_a_known_master_counts_from_its_failure() -> None:
    policy = RetryPolicy(300.0, met=True)
    attempts = RequestAttempts(policy, 30.0, None, now=0.0)
    now = 25.0  # the first try itself took long, which is no absence
    count = 0
    while (delay_s := attempts.failed(now)) is not None:
        now += delay_s
        count += 1
    assert 290.0 < now - 25.0 <= 300.0
    assert count < 100


def test_a_master_that_asks_to_wait_is_never_given_up() -> None:
    attempts = RequestAttempts(RetryPolicy(0.5), 30.0, None, now=0.0)
    delays = [attempts.paced(1000.0 * number, asked_s=0.5) for number in range(20)]
    assert min(delays) >= 0.5  # not before it said
    assert 5.0 <= delays[-1] <= 6.25  # and ever more seldom
    policy = RetryPolicy(300.0, met=True)
    attempts = RequestAttempts(policy, 30.0, None, now=0.0)
    attempts.paced(400.0)
    assert attempts.failed(500.0) is not None  # its absence counts from here


def test_a_long_wait_is_reported_at_most_once_a_minute() -> None:
    policy = RetryPolicy(300.0, met=True)
    assert [policy.paced(0.0, now) for now in (0.0, 4.0, 6.0, 10.0, 70.0)] == [False, False, True, False, True]


def test_an_absence_causes_one_warning_and_its_end_is_reported() -> None:
    policy = RetryPolicy(300.0, met=True)
    assert [policy.failed(now) for now in (0.0, 0.5, 1.5, 2.0, 60.0)] == [False, False, True, False, False]
    assert policy.answered(61.0) == 61.0
    assert policy.answered(62.0) is None
    assert [policy.failed(now) for now in (70.0, 72.0)] == [False, True]


def test_a_short_absence_is_not_reported() -> None:
    policy = RetryPolicy(300.0, met=True)
    assert not policy.failed(0.0)
    assert policy.answered(0.2) is None


def test_a_master_that_never_answered_is_not_reported_as_away() -> None:
    policy = RetryPolicy(300.0)
    assert not policy.failed(0.0)
    assert not policy.failed(5.0)
    assert policy.answered(6.0) is None
    assert policy.met
