"""Whose chunk is next: simulated queues with long and short packages, and how much of each they hand out."""

from collections import Counter
from collections.abc import Iterator
from itertools import count

import pytest

from cloudpar_master.core import turns, virtual_time
from cloudpar_master.core.turns import ALLOWANCE_US, STAY_S, Line, Turns

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

    def take(self, worker_id: str = "", now_s: float = 0.0) -> str:
        line = self.turns.take([own[0] for own in self.waiting.values() if own], worker_id, now_s)
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
    assert [turns.take([long, new], "w", 0.0).package for new in news] == ["new 1", "new 2", "new 3", "long"]


def test_of_the_first_chunks_of_several_accounts_that_of_the_account_with_the_least_work_is_next() -> None:
    turns = Turns()
    turns.take([Line(0, "ann", "before", first=True, cost_us=SHORT_US)], "w", 0.0)
    anns, bobs = (Line(number, account, "new", True, SHORT_US) for number, account in ((1, "ann"), (2, "bob")))
    assert turns.take([anns, bobs], "w", 0.0) == bobs


def test_of_accounts_that_have_received_the_same_the_one_with_the_oldest_message_is_next() -> None:
    lines = [
        Line(number, account, str(number), False, LONG_US) for number, account in ((5, "bob"), (9, "ann"), (1, "ann"))
    ]
    assert Turns().take(lines, "w", 0.0).number == 1


def test_a_bounded_number_of_accounts_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "REMEMBERED", 10)
    own = Turns()
    for number in range(60):
        own.take([Line(number, f"account {number}", "package", True, LONG_US)], "w", 0.0)
    assert list(own._packages) == [f"account {number}" for number in range(50, 60)]


def two_accounts(chunks: int = 100, cost_us: int = SHORT_US) -> Queue:
    """Both accounts have had their first chunks, and the chunks that wait have turns of equal length."""
    queue = Queue()
    for account in "ann", "bob":
        queue.send(f"{account}'s", chunks=chunks + 1, account=account, cost_us=cost_us)
    assert queue.takes(2) == {"ann's": 1, "bob's": 1}
    return queue


def test_a_worker_stays_with_an_account_for_some_seconds_after_its_change() -> None:
    """Otherwise a worker with one executor would need a new one for nearly each chunk of small packages."""
    queue = two_accounts()
    assert [queue.take("w", now_s) for now_s in (7.0, 7.0, 9.0, 11.999)] == ["ann's"] * 4
    assert queue.take("w", 12.0) == "bob's"
    assert [queue.take("w", now_s) for now_s in (13.0, 16.999, 17.0, 17.5)] == ["bob's"] * 3 + ["ann's"], (
        "both have five"
    )


def test_a_worker_leaves_an_account_that_is_far_ahead() -> None:
    """Otherwise the executors of a large worker, which requests many chunks at once, would all serve one account."""
    queue = two_accounts(cost_us=ALLOWANCE_US // 4)
    assert [queue.take("w") for _ in range(4)] == ["ann's"] * 3 + ["bob's"]
    hours = two_accounts(cost_us=3_600 * ALLOWANCE_US)
    assert Counter(hours.take("w") for _ in range(32)) == {"ann's": 16, "bob's": 16}


def test_an_account_with_which_a_worker_stays_keeps_the_precedence_of_its_first_chunks() -> None:
    queue = two_accounts(cost_us=ALLOWANCE_US // 4)
    for _ in range(3):
        assert queue.take("w") == "ann's"
    queue.send("ann's next")
    assert queue.take("other") == "ann's next"


def test_workers_stay_with_the_accounts_that_each_of_them_has_begun_to_serve() -> None:
    queue = two_accounts()
    assert [queue.take(worker_id, 0.5) for worker_id in ("one", "two", "one", "two")] == ["ann's", "bob's"] * 2
    assert queue.take("two", 0.6) == "bob's"
    assert queue.take("three", 0.6) == "ann's", "a worker without an account serves the one whose turn it is"


def test_a_worker_that_has_served_an_account_for_long_changes_at_once() -> None:
    queue = Queue()
    queue.send("ann's", chunks=100, cost_us=SHORT_US)
    for number in range(20):
        queue.take("w", number / 2)
    queue.send("bob's", chunks=3, account="bob", cost_us=SHORT_US)
    assert [queue.take("w", 10.0) for _ in range(4)] == ["bob's"] * 3 + ["ann's"]


def test_a_first_chunk_does_not_wait_for_a_worker_that_stays_with_another_account() -> None:
    queue = two_accounts()
    assert queue.take("w", 0.0) == "ann's"
    queue.send("new", account="carl")
    assert queue.take("w", 0.1) == "new"


def test_a_worker_leaves_an_account_that_has_no_more_chunks() -> None:
    queue = two_accounts(chunks=1)
    assert [queue.take("w") for _ in range(2)] == ["ann's", "bob's"]


def test_a_worker_does_not_stay_for_longer_when_the_clock_goes_back() -> None:
    queue = two_accounts()
    assert queue.take("w", 3_600.0) == "ann's"
    assert queue.take("w", 0.0) == "bob's"


def test_a_stay_does_not_change_the_shares_of_accounts() -> None:
    queue, taken = two_accounts(chunks=1_000), Counter[str]()
    for number in range(1_000):
        taken[queue.take(f"worker {number % 3}", number * STAY_S / 20)] += 1
    assert 480 <= taken["ann's"] <= 520
