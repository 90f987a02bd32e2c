"""Turns at a worker: whose tasks run next, by the execution time that the tasks of accounts and packages have had."""

from collections import Counter

import pytest

from cloudpar_protocol.payloads import TaskResult
from cloudpar_worker.core import execution_times, turns
from cloudpar_worker.core.lease_record import LeaseRecord
from cloudpar_worker.core.turns import ALLOWANCE_US, AWAY_US, Turns
from support.leases import lease_of
from worker.driven import CODE

SHORT_US, LONG_US, HOUR_US = 50_000, 3_000_000, 3_600_000_000


def record(account: str, package: str, tasks: int = 1, start: int = 0) -> LeaseRecord:
    return LeaseRecord(lease_of(CODE, tasks, account=account, package_id=package, start=start), 0, 0)


def calls(account: str, count: int = 40) -> list[LeaseRecord]:
    """Packages of one task each."""
    return [record(account, f"call {number} of {account}") for number in range(count)]


class Executor:
    """Runs one task after the other, in turn."""

    def __init__(self, *records: LeaseRecord) -> None:
        self.turns = Turns()
        self.records = list(records)
        self.now_us = 0
        self.ran_us: Counter[str] = Counter()

    def next(self) -> LeaseRecord:
        return self.turns.order(self._ready(), list, lambda _: 0.0, self.now_us)[0]

    def run(self, duration_us: dict[str, int]) -> str:
        """Run the next task, whose duration depends on its account. Returns its package."""
        chosen = self.next()
        self.turns.fed(chosen, self._ready(), self.records, list, self.now_us)
        index, _ = chosen.take(1)
        ran_us = duration_us[chosen.lease.account]
        self.now_us += ran_us
        self.ran_us[chosen.lease.account] += ran_us
        chosen.finished([TaskResult(index, "ok", ran_us)], self.now_us)
        self.turns.ran(chosen.lease, ran_us)
        return chosen.lease.package_id

    def _ready(self) -> list[LeaseRecord]:
        return [each for each in self.records if each.ready]


def test_an_account_with_many_packages_of_one_long_task_gets_no_more_time_than_another() -> None:
    """Once, one of these tasks ran for each task of the other account."""
    executor = Executor(record("ann", "map", 200, start=4), *calls("bob"))
    while executor.ran_us["ann"] < 200 * SHORT_US:
        executor.run({"ann": SHORT_US, "bob": LONG_US})
    assert executor.ran_us["bob"] <= executor.ran_us["ann"] + 4 * LONG_US


def test_accounts_share_by_time_and_not_by_packages() -> None:
    maps = [record("bob", f"map {number}", 1_000, start=4) for number in range(10)]
    executor = Executor(record("ann", "map", 1_000, start=4), *maps)
    for _ in range(200):
        executor.run({"ann": SHORT_US, "bob": SHORT_US})
    assert executor.ran_us["ann"] == executor.ran_us["bob"]


def test_packages_of_an_account_share_its_time() -> None:
    executor = Executor(record("ann", "one", 100, start=4), record("ann", "two", 100, start=4))
    ran = Counter(executor.run({"ann": SHORT_US}) for _ in range(50))
    assert ran == {"one": 25, "two": 25}


def test_the_first_task_of_a_package_goes_before_a_long_job_of_its_account_and_of_another() -> None:
    executor = Executor(record("ann", "map", 100, start=4), record("bob", "map of bob", 100, start=4))
    for _ in range(9):
        executor.run({"ann": LONG_US, "bob": LONG_US})
    for account in "ann", "bob", "new":
        executor.records += calls(account, 1)
        assert executor.run({"ann": SHORT_US, "bob": SHORT_US, "new": SHORT_US}) == f"call 0 of {account}"


def test_an_account_that_runs_only_a_task_of_an_hour_does_not_take_the_precedence_of_first_tasks_away() -> None:
    own, ann, bob = Turns(), record("ann", "map", 9, start=4), record("bob", "long", 1, start=4)
    bob.take(1)
    for _ in range(2):
        own.ran(ann.lease, ALLOWANCE_US + 1)
    own.fed(ann, [ann], [ann, bob], lambda: [(bob.lease, HOUR_US)], 0)
    assert own.goes_first(record("ann", "call"))
    own.fed(ann, [ann], [ann, bob], list, 0)
    assert not own.goes_first(record("ann", "call"))


def test_an_account_gets_its_share_again_after_tasks_of_an_hour_that_ran_while_no_other_account_had_work() -> None:
    """Once, the newcomer got an hour of its own after the end of these tasks."""
    own, ann, bob = Turns(), record("ann", "long", 100, start=4), record("bob", "map", 100, start=4)
    own.fed(ann, [ann], [ann], list, 0)
    own.fed(bob, [bob], [ann, bob], lambda: [(ann.lease, HOUR_US)], HOUR_US)
    own.ran(ann.lease, HOUR_US)
    ran: Counter[str] = Counter()
    for number in range(20):
        now_us = HOUR_US + number * SHORT_US
        (chosen, _) = own.order([ann, bob], list, lambda _: 0.0, now_us)
        own.fed(chosen, [ann, bob], [ann, bob], list, now_us)
        own.ran(chosen.lease, SHORT_US)
        ran[chosen.lease.account] += 1
    assert ran == {"ann": 10, "bob": 10}


@pytest.mark.parametrize(("away_us", "behind_us"), [(AWAY_US, LONG_US), (AWAY_US + 1, 0)])
def test_an_account_keeps_what_it_is_behind_while_it_has_no_tasks_here_for_a_moment(
    away_us: int, behind_us: int
) -> None:
    own, ann, bob = Turns(), record("ann", "map", 9, start=4), record("bob", "map of bob", 9, start=4)
    own.fed(ann, [ann, bob], [ann, bob], list, 0)
    own.ran(bob.lease, LONG_US)
    for now_us in (AWAY_US // 2, away_us):
        own.fed(bob, [bob], [bob], list, now_us)
    assert own.behind_us(ann.lease, bob.lease) == behind_us


def test_packages_of_two_accounts_are_behind_each_other_as_their_accounts_are() -> None:
    own = Turns()
    one, two, three = (record(*each).lease for each in (("ann", "one"), ("ann", "two"), ("bob", "three")))
    own.ran(one, HOUR_US)
    assert (own.behind_us(two, one), own.behind_us(one, two)) == (HOUR_US, -HOUR_US)
    assert (own.behind_us(three, two), own.behind_us(two, three)) == (HOUR_US, -HOUR_US)


def test_a_bounded_number_of_accounts_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in turns, execution_times:
        monkeypatch.setattr(module, "REMEMBERED", 10)
    own = Turns()
    for number in range(60):
        own.ran(record(f"account {number}", f"package {number}").lease, SHORT_US)
    assert list(own._packages) == [f"account {number}" for number in range(50, 60)]
    assert len(own._accounts._finish_us) == 10
