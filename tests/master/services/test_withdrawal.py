"""The waiting chunks of an ended package leave a queue that the master can look into."""

from collections.abc import Callable

import pytest

from cloudpar_master.ports import AccountRecord
from support.watched_world import WatchedWorld
from support.world import POLICY, World, publication

End = Callable[[World, AccountRecord, str], object]


def expire(world: World, ann: AccountRecord, package_id: str) -> None:
    world.clock.move(POLICY.lifetime_s)
    world.timer.tick()


ENDS: dict[str, End] = {
    "cancel": lambda world, ann, package_id: world.cancel(ann, package_id),
    "acknowledge": lambda world, ann, package_id: world.acknowledge(ann, package_id),
    "expiry": expire,
}


@pytest.mark.parametrize("end", ENDS)
def test_an_ended_package_whose_chunks_no_worker_has_received_is_settled_at_once_and_leaves_no_message(
    world: World, ann: AccountRecord, end: str
) -> None:
    """Otherwise a user could fill the queue with packages that no worker can run, at hundreds a second."""
    for _ in range(3):
        package_id = world.start(ann, python="9.9")
        assert world.backend.queue.waiting()
        ENDS[end](world, ann, package_id)
        assert world.head(package_id).life.settled
        assert world.backend.queue.waiting() == 0
    account = world.record(ann.account_id)
    assert (account.spent_us, account.reserved_us) == (0, 0)


def test_chunks_at_workers_are_still_charged_after_the_others_have_left_the_queue(
    world: World, ann: AccountRecord
) -> None:
    package_id = world.start(ann, chunksize=1)
    lease = world.lease()
    other = world.start(ann, chunksize=1)
    world.cancel(ann, package_id)
    assert world.head(package_id).tasks.stopping == lease.ranges
    assert {each.package_id for each in world.retrieve()} == {other}
    assert not world.head(package_id).life.settled
    world.publish(publication(lease, outcome="cancelled", duration_us=70, closes=True))
    assert world.head(package_id).life.settled
    assert world.record(ann.account_id).spent_us == 70


def test_the_chunk_of_a_lost_worker_leaves_the_queue_and_its_time_is_awaited(world: World, ann: AccountRecord) -> None:
    """The worker may only be slow, and report the time."""
    package_id = world.start(ann, tasks=1)
    lease = world.lease()
    world.clock.move(POLICY.lease_s + 1)
    assert world.backend.queue.waiting()
    world.cancel(ann, package_id)
    assert world.backend.queue.waiting() == 0
    assert not world.head(package_id).life.settled
    world.publish(publication(lease, outcome="cancelled", duration_us=70, closes=True))
    assert world.record(ann.account_id).spent_us == 70


def test_a_chunk_whose_lease_ends_after_the_end_of_its_package_leaves_the_queue_at_the_settlement(
    world: World, ann: AccountRecord
) -> None:
    package_id = world.start(ann, tasks=1)
    world.lease()
    world.cancel(ann, package_id)
    world.settle()
    assert world.head(package_id).life.settled
    assert world.backend.queue.waiting() == 0


def test_a_package_whose_master_dies_after_the_removal_is_settled_like_one_without(
    world: World, ann: AccountRecord
) -> None:
    package_id = world.start(ann)
    dying = WatchedWorld(world)

    def withdraw(*line: str) -> list[str]:
        world.backend.queue.withdraw(*line)
        raise KeyboardInterrupt

    dying.ports["queue"].instead["withdraw"] = withdraw
    with pytest.raises(KeyboardInterrupt):
        dying.cancel(ann, package_id)
    assert world.status(ann, package_id).state == "cancelled"
    assert not world.head(package_id).life.settled
    world.settle()
    assert world.head(package_id).life.settled


def test_a_message_that_names_no_chunk_is_removed_too(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    world.backend.queue._db.execute("UPDATE messages SET body = 'damaged'")  # type: ignore[attr-defined]
    world.cancel(ann, package_id)
    assert world.backend.queue.waiting() == 0
    assert not world.head(package_id).life.settled


def test_a_chunk_whose_lease_ends_after_the_settlement_leaves_the_queue_with_the_tombstone(
    world: World, ann: AccountRecord
) -> None:
    package_id = world.start(ann, tasks=1)
    world.backend.queue.extend([world.lease().receipt], 100.0)
    world.cancel(ann, package_id)
    world.settle()
    world.clock.move(100.0)
    assert world.backend.queue.waiting()
    world.acknowledge(ann, package_id)
    world.clock.move(POLICY.tombstone_s)
    world.timer.tick()
    assert world.backend.packages.load(package_id) is None
    assert world.backend.queue.waiting() == 0
