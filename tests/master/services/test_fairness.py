"""One account's work does not delay another's. A worker retrieves ahead like the real one, in simulated time."""

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from pathlib import Path

import pytest
from msgspec.structs import replace

from cloudpar_master.core.head import Head
from cloudpar_master.core.planning import NESTED_PACKAGES
from cloudpar_master.ports import AccountRecord
from cloudpar_protocol.worker_messages import Lease
from support.world import HOUR_US, POLICY, World, master, publication

TASK_S = 0.010
AHEAD_S = 0.3
EXECUTORS = 2
SWITCH_S = 0.5
"""Seconds that a real agent waits, and needs for new executors, before it serves another account."""


class Chunkwise:
    """A worker whose executors run whole chunks, in the order of retrieval, with some chunks in stock."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.stock: list[Lease] = []
        self.running: list[tuple[float, int, Lease]] = []
        self.done = 0

    def step(self) -> None:
        """Run until the next chunk is done."""
        self.fill()
        while self.stock and len(self.running) < EXECUTORS:
            lease = self.stock.pop(0)
            self.done += 1
            heappush(self.running, (self.world.clock.now() + _length_s(lease), self.done, lease))
            self.fill()
        if self.running:
            at, _, lease = heappop(self.running)
            self.world.clock.move(at - self.world.clock.now())
            self.world.publish(publication(lease, duration_us=round(TASK_S * 1e6)))
        else:
            self.world.clock.move(0.01)

    def fill(self) -> None:
        while sum(map(_length_s, self.stock)) < AHEAD_S * EXECUTORS:
            more = self.world.retrieve(chunks=1, executors=EXECUTORS)
            if not more:
                return
            self.stock += more


def _length_s(lease: Lease) -> float:
    return TASK_S * sum(end - start for start, end in lease.ranges)


@pytest.mark.parametrize("packages", [1, 5, 1_000])
def test_ten_tasks_are_not_delayed_by_another_accounts_hundred_thousand(tmp_path: Path, packages: int) -> None:
    with master(tmp_path) as world:
        ann, bob = world.account("ann", 100 * HOUR_US), world.account("bob")
        for _ in range(packages):
            world.start(ann, tasks=100_000 // packages, chunksize=None)
        agent = Chunkwise(world)
        for _ in range(4):
            for _ in range(37):
                agent.step()
            began = world.clock.now()
            package_id = world.start(bob, tasks=10, chunksize=None)
            while not world.head(package_id).life.ended:
                agent.step()
            assert world.clock.now() - began + SWITCH_S < 2.0


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Run a master with few open packages for each account."""
    with master(tmp_path, replace(POLICY, open_packages=2, open_small_packages=6)) as world:
        yield world


def test_an_account_opens_few_packages_while_others_wait_in_the_queue(world: World, ann: AccountRecord) -> None:
    large = [world.start(ann, tasks=1_000) for _ in range(4)]
    small = [world.start(ann, tasks=32, chunksize=None) for _ in range(4)]
    assert [world.head(each).pace.closed for each in large] == [False, False, True, True]
    assert [world.head(each).pace.closed for each in small] == [False, False, True, True]
    closed = world.head(large[3])
    assert (closed.tasks.open, closed.quota.wanted_us, closed.quota.reserved_us) == ([], 0, 0)
    assert world.status(ann, large[3]).state == "running"


def test_a_package_that_a_task_waits_for_opens_one_chunk_at_once(world: World, ann: AccountRecord) -> None:
    for _ in range(4):
        world.start(ann, tasks=1_000)
    nested = world.start(ann, tasks=1_000, depth=1)
    assert len(world.head(nested).tasks.open) == 1


def test_an_account_opens_few_packages_although_it_says_that_tasks_have_started_them(
    world: World, ann: AccountRecord
) -> None:
    """Once, a client could open as many packages as it liked, because it chooses the depth of each."""
    nested = [world.start(ann, tasks=1_000, depth=1) for _ in range(2 * NESTED_PACKAGES)]
    closed = [world.head(each).pace.closed for each in nested]
    assert closed == [False] * NESTED_PACKAGES + [True] * NESTED_PACKAGES
    assert world.status(ann, nested[-1]).state == "running"
    assert world.head(nested[-1]).pace.closed
    deeper = world.start(ann, tasks=1_000, depth=2)
    assert not world.head(deeper).pace.closed
    world.cancel(ann, nested[0])
    assert not world.head(nested[NESTED_PACKAGES]).pace.closed


def test_a_closed_package_that_a_task_waits_for_opens_when_few_of_its_depth_are_open(
    world: World, ann: AccountRecord
) -> None:
    nested = [world.start(ann, tasks=1_000, depth=1) for _ in range(NESTED_PACKAGES + 1)]
    outer = [world.start(ann, tasks=1_000) for _ in range(3)]
    for package_id in nested[:2]:
        world.cancel(ann, package_id)
    assert world.head(outer[-1]).pace.closed
    assert not world.head(nested[-1]).pace.closed


def test_with_an_empty_queue_every_package_opens(world: World, ann: AccountRecord) -> None:
    for _ in range(5):
        package_id = world.start(ann, tasks=100, chunksize=50)
        assert not world.head(package_id).pace.closed
        assert len(world.retrieve()) == 2


def test_closed_packages_open_when_executors_idle_oldest_first(world: World, ann: AccountRecord) -> None:
    package_ids = [world.start(ann, tasks=1_000) for _ in range(4)]
    while not world.head(package_ids[0]).life.ended:
        world.work(world.retrieve(chunks=4))
    world.work_all()
    assert {world.status(ann, each).state for each in package_ids} == {"completed"}
    assert world.record(ann.account_id).spent_us == 4_000 * 1_000


def test_each_account_has_its_own_limit_of_open_packages(world: World, ann: AccountRecord, bob: AccountRecord) -> None:
    for _ in range(5):
        world.start(ann, tasks=1_000)
    assert not world.head(world.start(bob, tasks=1_000)).pace.closed


def test_a_closed_package_can_be_cancelled(world: World, ann: AccountRecord) -> None:
    _, _, three, four = [world.start(ann, tasks=1_000) for _ in range(4)]
    assert world.cancel(ann, three).cancelled == [(0, 1_000)]
    assert world.cancel(ann, four, only_queued=True).cancelled == [(0, 1_000)]
    assert world.status(ann, four).state == "completed"


def test_the_timer_folds_a_closed_package_once_until_it_expires(world: World, ann: AccountRecord) -> None:
    """A new package is due at once, and only a fold can note that there is nothing to do for it."""
    package_ids = [world.start(ann, tasks=1_000) for _ in range(4)]
    world.timer.tick()
    world.clock.move(60.0)
    assert world.timer.tick() <= 2
    assert world.timer.tick() == 0
    assert world.head(package_ids[3]).pace.closed
    world.clock.move(POLICY.lifetime_s)
    world.timer.tick()
    assert world.status(ann, package_ids[3]).reason == "expired"


def test_when_a_package_ends_the_oldest_closed_one_of_its_account_opens(
    world: World, ann: AccountRecord, bob: AccountRecord
) -> None:
    world.start(bob, tasks=1_000)
    ending, _, *closed = [world.start(ann, tasks=5 if number == 0 else 1_000) for number in range(4)]
    assert [world.head(each).pace.closed for each in closed] == [True, True]
    world.work([lease for lease in world.retrieve(chunks=3) if lease.package_id == ending])
    assert world.head(ending).life.ended
    assert [world.head(each).pace.closed for each in closed] == [False, True]


def test_when_a_package_is_cancelled_the_oldest_closed_one_of_its_account_opens(
    world: World, ann: AccountRecord
) -> None:
    one, _, *closed = [world.start(ann, tasks=1_000) for _ in range(4)]
    world.cancel(ann, one)
    assert [world.head(each).pace.closed for each in closed] == [False, True]


def test_an_await_opens_a_closed_package_where_the_master_does_not_look_for_the_next_one(tmp_path: Path) -> None:
    with master(tmp_path, replace(POLICY, open_packages=2, looks_at_end=False)) as world:
        ann = world.account("ann")
        one, _, three, four = [world.start(ann, tasks=1_000) for _ in range(4)]
        world.status(ann, three)
        assert world.head(three).pace.closed
        world.cancel(ann, one)
        assert world.head(three).pace.closed
        world.status(ann, three)
        world.status(ann, four)
        assert [world.head(each).pace.closed for each in (three, four)] == [False, True]


def test_an_await_of_many_closed_packages_counts_the_open_ones_of_their_account_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with master(tmp_path, replace(POLICY, open_packages=2, looks_at_end=False)) as world:
        ann = world.account("ann")
        one, two, *closed = [world.start(ann, tasks=1_000) for _ in range(30)]
        world.cancel(ann, one)
        read, asked = world.backend.packages.running_heads, []

        def running_heads(account_id: str) -> Iterable[Head]:
            asked.append(account_id)
            return read(account_id)

        monkeypatch.setattr(world.backend.packages, "running_heads", running_heads)
        world.news(ann, two, *closed)
        assert asked == [ann.account_id]
        assert [world.head(each).pace.closed for each in closed] == [False] + [True] * 27
