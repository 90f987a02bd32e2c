"""How often an account may send requests: a burst, and then so many a second."""

import pytest

from cloudpar_master.core.token_bucket import Bucket, take

AT = 100.0


@pytest.mark.parametrize("free", [2.0, 1.0])
def test_a_request_is_taken_if_one_is_free(free: float) -> None:
    assert take(Bucket(free, AT), AT, per_s=4.0, burst=3.0) == (Bucket(free - 1.0, AT), 0.0)


def test_a_request_that_comes_too_early_learns_when_a_token_is_free_and_takes_none() -> None:
    assert take(Bucket(0.5, AT), AT, per_s=4.0, burst=3.0) == (Bucket(0.5, AT), 0.125)


def test_a_bucket_fills_with_time_up_to_the_burst() -> None:
    empty = Bucket(0.0, AT)
    assert take(empty, AT + 0.5, per_s=4.0, burst=3.0) == (Bucket(1.0, AT + 0.5), 0.0)
    assert take(empty, AT + 60.0, per_s=4.0, burst=3.0) == (Bucket(2.0, AT + 60.0), 0.0)


def test_a_clock_that_was_set_back_fills_no_bucket_and_counts_from_its_new_time() -> None:
    bucket, wait_s = take(Bucket(0.0, AT), AT - 10.0, per_s=4.0, burst=3.0)
    assert (bucket, wait_s) == (Bucket(0.0, AT - 10.0), 0.25)
    assert take(bucket, AT - 9.75, per_s=4.0, burst=3.0) == (Bucket(0.0, AT - 9.75), 0.0)
