"""Attempts that are repeated."""

import threading

import pytest

from cloudpar_protocol.errors import RequestError, Unavailable
from cloudpar_protocol.transport.retries import Backoff, Stopped, retry


class Attempts:
    """They fail with these errors, then one is answered. The caller gives up after the last of `patience` failures."""

    def __init__(self, *errors: Exception, patience: int = 3) -> None:
        self.errors = list(errors)
        self.heard: list[Exception] = []
        self.stopped = threading.Event()
        self.stops = False
        self._patience = patience

    def once(self) -> str:
        if self.stops:
            self.stopped.set()
        if self.errors:
            raise self.errors.pop(0)
        return "answer"

    def failed(self, error: OSError | RequestError) -> float:
        self.heard.append(error)
        if len(self.heard) == self._patience:
            raise error
        return 0.0

    def run(self) -> str:
        return retry(self.once, self.failed, self.stopped)


def test_attempts_are_repeated_until_one_is_answered() -> None:
    attempts = Attempts(OSError(), Unavailable("later"))
    assert attempts.run() == "answer"
    assert [type(error) for error in attempts.heard] == [OSError, Unavailable]


def test_the_caller_decides_when_to_give_up() -> None:
    attempts = Attempts(OSError(), Unavailable("later"), OSError(), patience=2)
    with pytest.raises(Unavailable):
        attempts.run()
    assert len(attempts.errors) == 1


def test_another_error_than_that_of_a_request_is_raised_at_once() -> None:
    attempts = Attempts(ValueError("a bug"))
    with pytest.raises(ValueError, match="a bug"):
        attempts.run()
    assert not attempts.heard


def test_no_attempt_is_made_once_this_side_has_stopped() -> None:
    attempts = Attempts(OSError())
    attempts.stopped.set()
    with pytest.raises(Stopped):
        attempts.run()
    assert len(attempts.errors) == 1


def test_a_failure_after_the_stop_is_not_reported() -> None:
    attempts = Attempts(ConnectionAbortedError())
    attempts.stops = True
    with pytest.raises(Stopped):
        attempts.run()
    assert not attempts.heard


def test_delays_double_up_to_the_longest_and_vary_by_a_quarter() -> None:
    backoff = Backoff(0.5, 3.0)
    for expected_s in (0.5, 1.0, 2.0, 3.0, 3.0):
        assert expected_s <= backoff.next_s() <= 1.25 * expected_s
    backoff.reset()
    assert backoff.next_s() <= 0.625


def test_no_attempt_comes_before_the_time_that_the_other_side_requires() -> None:
    backoff = Backoff(0.5, 3.0)
    assert 7.0 <= backoff.next_s(7.0) <= 8.75
    assert 1.0 <= backoff.next_s(0.1) <= 1.25
