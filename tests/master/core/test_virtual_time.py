"""Who has received the least, after charges and refunds, and how many keys are remembered."""

import pytest

from cloudpar_master.core import virtual_time
from cloudpar_master.core.virtual_time import VirtualTime


def charged(**costs_us: int) -> VirtualTime:
    """Return a virtual time after one charge of each key."""
    time = VirtualTime()
    for key, cost_us in costs_us.items():
        time.charge(key, cost_us)
    return time


def test_a_new_key_has_received_nothing_and_is_not_ahead() -> None:
    time = VirtualTime()
    assert (time.start_us("new"), time.lead_us("new")) == (0, 0)


def test_the_waiting_key_that_has_received_the_least_is_next_and_of_several_the_first() -> None:
    time = charged(a=30, b=10, c=10)
    assert time.next(["a", "b", "c"]) == "b"
    assert time.next(["c", "b"]) == "c"


def test_a_key_that_comes_later_does_not_get_what_the_others_received_before() -> None:
    time = charged(a=30, b=20)
    assert time.next(["a", "b"]) == "b"
    assert time.start_us("new") == 20


def test_the_last_chunk_of_a_key_does_not_count_for_its_lead() -> None:
    time = charged(a=1_000)
    assert time.lead_us("a") == 0
    time.charge("a", 5)
    assert time.lead_us("a") == 1_000


def test_a_refund_takes_a_charge_back() -> None:
    time = charged(a=5)
    time.charge("a", 10)
    time.refund("a", 5)
    assert (time.start_us("a"), time.lead_us("a")) == (10, 5)
    time.refund("a", 10)
    assert (time.start_us("a"), time.lead_us("a")) == (0, 0)


def test_the_key_whose_last_charge_is_the_oldest_is_forgotten_and_counts_as_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise the memory of a master would grow with each package that it has ever served."""
    monkeypatch.setattr(virtual_time, "REMEMBERED", 2)
    time = charged(a=10, b=10)
    assert [time.start_us(key) for key in "ab"] == [10, 10]
    time.charge("a", 10)
    time.charge("c", 10)
    assert [(time.start_us(key), time.lead_us(key)) for key in "abc"] == [(20, 10), (0, 0), (10, 0)]


def test_a_refund_for_a_forgotten_key_changes_nothing() -> None:
    time = charged(a=10)
    time.refund("forgotten", 5)
    assert time.start_us("forgotten") == 0
