"""The page of the guarantees and the tests that carry their numbers belong together."""

from .promises import promises


def test_numbers() -> None:
    assert [promise.number for promise in promises()] == list(range(1, 23))
