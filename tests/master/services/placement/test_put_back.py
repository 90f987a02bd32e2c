"""A chunk that a worker cannot run goes back to the queue as a new message, which keeps what the master knows of it."""

from cloudpar_master.ports import AccountRecord
from cloudpar_protocol.worker_messages import Lease
from master.services.agent import Agent
from support.world import POLICY, World, publication


def lose_and_put_back(world: World, package_id: str) -> Lease:
    """Lose a worker, and let one retrieve its chunk that cannot run it. Returns the lost lease."""
    (lease,) = Agent(world, "lost", "3.12").take()
    assert lease.package_id == package_id
    world.clock.move(POLICY.lease_s + 1)
    assert Agent(world, "wrong").take() == []
    return lease


def test_a_chunk_that_a_lost_worker_may_still_run_is_not_cancelled_as_queued(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann, 5, python="3.12")
    lose_and_put_back(world, package_id)
    assert world.cancel(ann, package_id, only_queued=True).cancelled == []
    (lease,) = Agent(world, "right", "3.12").take()
    assert (lease.package_id, lease.attempt, lease.ranges) == (package_id, 2, [(0, 5)])


def test_a_chunk_that_no_worker_had_is_cancelled_as_queued_after_it_was_put_back(
    world: World, ann: AccountRecord
) -> None:
    package_id = world.start(ann, 5, python="3.12")
    assert Agent(world, "wrong").take() == []
    world.cancel(ann, package_id, only_queued=True)
    assert Agent(world, "right", "3.12").take() == []
    assert world.head(package_id).tasks.cancelled == [(0, 5)]


def test_the_time_of_a_lost_worker_is_charged_although_its_chunk_was_put_back(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann, 5, python="3.12")
    lost = lose_and_put_back(world, package_id)
    world.cancel(ann, package_id)
    assert Agent(world, "right", "3.12").take() == []
    assert not world.status(ann, package_id).settled
    world.publish(publication(lost, outcome="cancelled"), worker_id="lost")
    status = world.status(ann, package_id)
    assert (status.settled, status.progress.charged_us) == (True, 5 * 1_000)


def test_a_chunk_that_is_put_back_waits_since_it_was_cut(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann, 5, python="3.12")
    for number in range(3):
        world.clock.move(2)
        assert Agent(world, f"wrong {number}").take() == []
    world.clock.move(2)
    (lease,) = Agent(world, "right", "3.12").take()
    assert (lease.package_id, round(lease.wait_us / 1e6, 1)) == (package_id, 8.0)


def test_a_chunk_whose_worker_is_lost_after_it_was_put_back_waits_since_the_loss(
    world: World, ann: AccountRecord
) -> None:
    package_id = world.start(ann, 5, python="3.12")
    world.clock.move(5)
    assert Agent(world, "wrong").take() == []
    Agent(world, "lost", "3.12").take()
    world.clock.move(POLICY.lease_s)
    (lease,) = Agent(world, "right", "3.12").take()
    assert (lease.package_id, lease.attempt) == (package_id, 2)
    assert lease.wait_us < 1_000_000
