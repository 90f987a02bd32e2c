"""Whose chunk is next: simulated queues with long and short packages, and how much of each they hand out."""

from collections import Counter
from collections.abc import Iterator
from itertools import count

import pytest

from cloudpar_master.core import turns, virtual_time
from cloudpar_master.core.turns import ALLOWANCE_US, Line, Turns

LONG_US, SHORT_US = 2_000_000, 10_000


class Queue:
    """The waiting chunks of packages, oldest first."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.waiting: dict[str, list[Line]] = {}
        self._numbers = count()

    def send(self, package: str, *, chunks: int = 1, cost_us: int = LONG_US, account: str = "ann") -> None:
        own = self.waiting.setdefault(package, [])
        for _ in range(chunks):
            own.append(Line(next(self._numbers), account, package, first=not own, cost_us=cost_us))

    def take(self) -> str:
        line = self.turns.take([own[0] for own in self.waiting.values() if own])
        self.waiting[line.package].remove(line)
        return line.package

    def takes(self, chunks: int) -> Counter[str]:
        return Counter(self.take() for _ in range(chunks))

    def rest(self) -> Iterator[str]:
        while any(self.waiting.values()):
            yield self.take()


def test_a_new_package_is_next_however_many_chunks_an_older_one_has_waiting() -> None:
    queue = Queue()
    queue.send("long", chunks=400)
    queue.takes(7)
    queue.send("new")
    assert queue.take() == "new"


def test_a_new_package_is_next_before_several_long_ones_of_its_account() -> None:
    queue = Queue()
    for name in ("one", "two", "three"):
        queue.send(name, chunks=100)
    queue.takes(8)
    queue.send("new")
    assert queue.take() == "new"


def test_a_new_package_of_an_account_with_a_long_one_is_next_beside_another_accounts_long_one() -> None:
    for before in range(2, 9):
        queue = Queue()
        queue.send("ann's", chunks=100)
        queue.send("bob's", chunks=100, account="bob")
        queue.takes(before)
        queue.send("new")
        assert queue.take() == "new"


def test_accounts_share_by_work_and_not_by_packages() -> None:
    queue = Queue()
    for number in range(20):
        queue.send(f"ann's {number}", chunks=100)
    queue.send("bob's", chunks=1_000, account="bob", cost_us=LONG_US // 4)
    taken = queue.takes(500)
    assert 385 <= taken["bob's"] <= 415


def test_packages_of_an_account_share_by_work() -> None:
    queue = Queue()
    queue.send("long", chunks=1_000)
    queue.send("short", chunks=1_000, cost_us=LONG_US // 4)
    taken = queue.takes(500)
    assert 95 <= taken["long"] <= 105


@pytest.mark.parametrize("account", ["ann", "bob"], ids=["same account", "another account"])
def test_a_stream_of_new_packages_does_not_stop_a_long_one(account: str) -> None:
    queue, taken = Queue(), Counter[str]()
    queue.send("long", chunks=1_000, account=account)
    for number in range(1_000):
        queue.send(f"new {number}")
        queue.send(f"also new {number}")
        taken[queue.take()] += 1
    assert 450 <= taken["long"] <= 550


def test_a_burst_of_small_packages_comes_before_a_long_one_as_far_as_the_allowance_goes() -> None:
    queue = Queue()
    queue.send("long", chunks=100)
    queue.takes(2)
    for number in range(ALLOWANCE_US // SHORT_US):
        queue.send(f"new {number}", cost_us=SHORT_US)
    assert "long" not in queue.takes(ALLOWANCE_US // SHORT_US)


def test_an_account_does_not_catch_up_on_the_time_when_it_had_no_work() -> None:
    queue = Queue()
    queue.send("bob's", chunks=1, account="bob")
    queue.send("ann's", chunks=1_000)
    queue.takes(500)
    queue.send("bob's second", chunks=400, account="bob")
    taken = queue.takes(200)
    assert 95 <= taken["bob's second"] <= 105


def test_an_account_that_takes_single_chunks_is_not_ahead_of_one_that_waits() -> None:
    queue, taken = Queue(), Counter[str]()
    queue.send("bob's", chunks=1_000, account="bob")
    queue.send("ann's")
    for _ in range(400):
        if not queue.waiting["ann's"]:
            queue.send("ann's", chunks=1)
            queue.waiting["ann's"][0] = queue.waiting["ann's"][0]._replace(first=False)
        taken[queue.take()] += 1
    assert 190 <= taken["bob's"] <= 210


def test_all_packages_end_although_most_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in turns, virtual_time:
        monkeypatch.setattr(module, "REMEMBERED", 10)
    queue = Queue()
    for number in range(60):
        queue.send(f"package {number}", chunks=2, account=f"account {number % 20}")
        if number % 3:
            queue.take()
    assert sum(1 for _ in queue.rest()) == 60 * 2 - 40


def test_chunks_that_come_back_untouched_do_not_count_for_turns() -> None:
    queue = Queue()
    queue.send("long", chunks=100)
    queue.takes(5)
    for number in range(20):
        queue.send(f"call {number}")
        (line,) = queue.waiting[f"call {number}"]
        for _ in range(3):
            assert queue.take() == f"call {number}"
            queue.turns.give_back(line)
            queue.waiting[f"call {number}"] = [line]
        queue.waiting[f"call {number}"] = []


def test_an_account_neither_gains_nor_loses_by_chunks_that_come_back() -> None:
    queue = Queue()
    queue.send("ann's", chunks=300)
    queue.send("bob's", chunks=300, account="bob")
    done: Counter[str] = Counter()
    for number in range(200):
        waiting = {name: lines[0] for name, lines in queue.waiting.items() if lines}
        name = queue.take()
        if name == "bob's" and number % 3 == 0:
            queue.turns.give_back(waiting[name])
            queue.waiting[name].insert(0, waiting[name])
        else:
            done[name] += 1
    assert abs(done["ann's"] - done["bob's"]) <= 2


def test_a_first_chunk_goes_first_up_to_the_allowance_and_then_takes_turns() -> None:
    turns, long = Turns(), Line(0, "ann", "long", first=False, cost_us=LONG_US)
    news = [Line(number, "ann", f"new {number}", first=True, cost_us=ALLOWANCE_US) for number in range(1, 5)]
    assert [turns.take([long, new]).package for new in news] == ["new 1", "new 2", "new 3", "long"]


def test_of_the_first_chunks_of_several_accounts_that_of_the_account_with_the_least_work_is_next() -> None:
    turns = Turns()
    turns.take([Line(0, "ann", "before", first=True, cost_us=SHORT_US)])
    anns, bobs = (Line(number, account, "new", True, SHORT_US) for number, account in ((1, "ann"), (2, "bob")))
    assert turns.take([anns, bobs]) == bobs


def test_of_accounts_that_have_received_the_same_the_one_with_the_oldest_message_is_next() -> None:
    lines = [
        Line(number, account, str(number), False, LONG_US) for number, account in ((5, "bob"), (9, "ann"), (1, "ann"))
    ]
    assert Turns().take(lines).number == 1


def test_a_bounded_number_of_accounts_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "REMEMBERED", 10)
    own = Turns()
    for number in range(60):
        own.take([Line(number, f"account {number}", "package", True, LONG_US)])
    assert list(own._packages) == [f"account {number}" for number in range(50, 60)]
