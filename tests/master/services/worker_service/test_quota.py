from collections.abc import Callable

import pytest
from msgspec.structs import replace

from cloudpar_master.core.quota import FIRST_SLICE_US
from cloudpar_master.ports import AccountRecord
from support.heads import altered
from support.packages import make_head, make_spec
from support.world import HOUR_US, POLICY, World, all_results, publication

FIX = "ask the operator to grant more"


def test_a_result_that_crosses_the_quota_fails_the_package_and_the_rest_never_runs(world: World) -> None:
    poor = world.account("poor", quota_us=25_000)
    package_id = world.start(poor, tasks=1_000)
    one, *others = world.retrieve(chunks=3)
    (view,) = world.publish(publication(one, duration_us=6_000)).leases
    assert view.state == "ended"
    assert {each.state for each in world.extend(*others)} == {"ended"}
    assert world.backend.queue.waiting() == 0
    assert world.retrieve() == []
    status = world.status(poor, package_id)
    assert (status.state, status.reason, all_results(status)) == ("failed", "quota", [0, 1, 2, 3, 4])
    assert status.message is not None
    assert FIX in status.message
    account = world.record(poor.account_id)
    assert (account.spent_us, account.reserved_us, status.settled) == (25_000, 0, True)


def test_a_lease_says_how_much_quota_is_left(world: World) -> None:
    poor = world.account("poor", quota_us=25_000)
    world.start(poor)
    lease = world.lease()
    assert lease.budget_us == 25_000
    (view,) = world.publish(publication(lease, [0], duration_us=5_000)).leases
    assert view.budget_us == 20_000
    world.start(world.record(poor.account_id))
    assert world.extend(lease)[0].budget_us == 20_000, "nothing is free beyond what its package holds"


def holding_each_other(world: World) -> tuple[AccountRecord, str, str]:
    """Start two packages of one account, each of which reserves half of its quota."""
    ann = world.account("ann", quota_us=2 * FIRST_SLICE_US)
    one, two = world.start(ann, tasks=40), world.start(ann, tasks=40)
    assert world.record(ann.account_id).free_us == 0
    return ann, one, two


def many_ended(world: World, account: AccountRecord) -> None:
    """Create over a thousand packages that started later and have ended."""
    for number in range(1_001):
        spec = replace(make_spec(f"ended {number}", started_at=world.clock.now()), account_id=account.account_id)
        head = altered(make_head(spec), state="completed", settled=True)
        world.backend.packages.create(spec, head)


def test_chunks_wait_and_are_not_lost_while_another_package_holds_the_rest_of_the_quota(world: World) -> None:
    ann, one, two = holding_each_other(world)
    first, *others = world.retrieve_all()
    theirs = [lease for lease in others if lease.package_id == two]
    world.publish(publication(first, duration_us=FIRST_SLICE_US // 5))
    for _ in range(20):  # its other leases run out, but no chunk is handed out without compute time
        world.clock.move(POLICY.lease_s - 1)
        world.timer.tick()
        world.extend(*theirs)
        assert world.retrieve() == []
    for lease in theirs:
        world.publish(publication(lease, duration_us=10))
    assert world.status(ann, two).state == "completed"
    world.clock.move(1.5)
    world.timer.tick()
    left = world.retrieve_all()
    assert {lease.attempt for lease in left} == {2}, "that they were lost once stays known"
    world.work(left)
    status = world.status(ann, one)
    assert (status.state, status.progress.errors, status.progress.done) == ("completed", 0, 40)
    world.settle()
    assert world.record(ann.account_id).spent_us == FIRST_SLICE_US + 35 * 1_000 + 40 * 10


def test_a_package_that_holds_the_rest_counts_however_many_ended_after_it(world: World) -> None:
    ann, one, two = holding_each_other(world)
    many_ended(world, ann)
    for lease in world.retrieve_all():
        if lease.package_id == one:
            world.publish(publication(lease, duration_us=FIRST_SLICE_US // 5))
    world.clock.move(2.0)
    world.timer.tick()
    assert [world.status(ann, each).state for each in (one, two)] == ["running", "running"]


def test_a_slice_that_its_package_has_not_noted_yet_counts(world: World) -> None:
    """The master is between two calls, or has died there."""
    ann = world.account("ann", quota_us=2 * FIRST_SLICE_US)
    world.backend.accounts.reserve(ann.account_id, "another@0", 0, FIRST_SLICE_US)
    package_id = world.start(ann, tasks=40)
    world.publish(publication(world.lease(), duration_us=FIRST_SLICE_US))
    world.clock.move(2.0)
    world.timer.tick()
    assert world.status(ann, package_id).state == "running"
    world.backend.accounts.settle(ann.account_id, "another@0", FIRST_SLICE_US)
    world.clock.move(2.0)
    world.timer.tick()
    assert world.status(ann, package_id).state == "failed"


def test_packages_that_wait_for_each_others_slices_fail(world: World) -> None:
    ann, one, two = holding_each_other(world)
    for lease in world.retrieve():
        world.publish(publication(lease, duration_us=FIRST_SLICE_US))
    world.clock.move(2.0)
    world.timer.tick()
    states = {world.status(ann, each).state for each in (one, two)}
    assert states == {"failed"}
    world.settle()
    account = world.record(ann.account_id)
    assert (account.spent_us, account.reserved_us) == (2 * FIRST_SLICE_US, 0)


@pytest.mark.parametrize("come_back", ["grant", "settle"])
def test_a_waiting_package_goes_on_when_there_is_more(world: World, come_back: str) -> None:
    ann, one, two = holding_each_other(world)
    mine = [lease for lease in world.retrieve() if lease.package_id == one]
    world.publish(publication(mine[0], duration_us=FIRST_SLICE_US // 5))
    more: dict[str, Callable[[], object]] = {
        "grant": lambda: world.backend.accounts.grant(ann.account_id, "more", HOUR_US),
        "settle": lambda: world.cancel(ann, two),
    }
    more[come_back]()
    world.settle()
    world.clock.move(1.5)
    world.timer.tick()
    world.work_all()
    assert world.status(ann, one).state == "completed"
