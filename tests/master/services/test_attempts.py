"""What counts against a task: workers that were lost with it, and nothing else."""

import pytest

from cloudpar_master.ports import LARGEST_RECEIVES, AccountRecord
from cloudpar_protocol.errors import Outcome
from master.services.world import POLICY, World, all_results, publication

LOSSES = 4
"""What docs/sdk.md says."""


def lose(world: World) -> None:
    """A worker takes a chunk, and is not heard of again."""
    world.lease()
    world.clock.move(POLICY.lease_s + 1.0)
    world.timer.tick()


def test_the_stated_number() -> None:
    assert LARGEST_RECEIVES == LOSSES


def test_a_task_whose_workers_are_lost_ends_with_the_reason(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann, 1)
    for _ in range(LOSSES):
        assert not world.status(ann, package_id).results
        lose(world)
    status = world.status(ann, package_id)
    (result,) = status.results
    assert (status.state, result.outcome, result.duration_us) == ("error", "lost", 0)
    assert result.message is not None
    assert f"lost {LOSSES} times" in result.message
    assert "split it" in result.message  # the mend
    assert world.retrieve() == []


def test_the_others_of_its_chunk_have_their_results(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann, 8, chunksize=8)
    for _ in range(100):
        for lease in world.retrieve():
            if all(not start <= 5 < end for start, end in lease.ranges):
                world.publish(publication(lease))
        world.clock.move(POLICY.lease_s + 1.0)
        world.timer.tick()
        if world.head(package_id).life.ended:
            break
    status = world.status(ann, package_id)
    assert sorted(all_results(status)) == list(range(8))
    assert {result.index for result in status.results if result.outcome == "lost"} == {5}


def test_a_chunk_given_back_costs_no_attempt(world: World, ann: AccountRecord) -> None:
    """However many workers drain: spot instances that go in good order are no losses."""
    package_id = world.start(ann, 1)
    for _ in range(3 * LOSSES):
        lease = world.lease()
        assert lease.attempt == 1
        world.give_back(lease, (0, 1), closes=True)
    world.work_all()
    assert world.status(ann, package_id).state == "completed"


def test_a_chunk_given_back_keeps_its_losses(world: World, ann: AccountRecord) -> None:
    """Or a task that kills its workers would go on, when one after the other gives it back for not being alone."""
    package_id = world.start(ann, 1)
    for attempt in range(1, LOSSES + 1):
        lease = world.lease()
        assert lease.attempt == attempt
        world.give_back(lease, (0, 1), closes=True)
        assert world.lease().attempt == attempt
        world.clock.move(POLICY.lease_s + 1.0)
    assert world.retrieve() == []
    (result,) = world.status(ann, package_id).results
    assert (result.outcome, result.duration_us) == ("lost", 0)
    assert f"lost {LOSSES} times" in (result.message or "")


@pytest.mark.parametrize(("outcome", "state"), [("ok", "completed"), ("error", "error"), ("crashed", "error")])
def test_losses_and_what_the_task_does_are_counted_apart(
    world: World, ann: AccountRecord, outcome: Outcome, state: str
) -> None:
    """An error ends its task at once; a task that was nearly given up may still end well."""
    package_id = world.start(ann, 1)
    for _ in range(LOSSES - 1):
        lose(world)
    lease = world.lease()
    assert lease.attempt == LOSSES
    world.publish(publication(lease, outcome=outcome, duration_us=7))
    world.settle()
    status = world.status(ann, package_id)
    assert (status.state, [result.outcome for result in status.results]) == (state, [outcome])
    assert world.record(ann.account_id).spent_us == 7
