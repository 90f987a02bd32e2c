"""Only workers that were lost with a task count against it."""

import pytest

from cloudpar_master.ports import LARGEST_RECEIVES, AccountRecord
from cloudpar_protocol.errors import Outcome
from support.world import POLICY, World, publication

LOSSES = 4
"""The number in docs/sdk.md."""


def lose(world: World) -> None:
    """Let a worker take a chunk, and send no further request."""
    world.lease()
    world.clock.move(POLICY.lease_s + 1.0)
    world.timer.tick()


def test_a_chunk_is_given_up_after_as_many_losses_as_the_docs_say() -> None:
    assert LARGEST_RECEIVES == LOSSES


def test_a_task_whose_workers_are_lost_ends_with_the_reason_and_the_fix(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann, 1)
    for _ in range(LOSSES):
        assert not world.status(ann, package_id).results
        lose(world)
    status = world.status(ann, package_id)
    (result,) = status.results
    assert (status.state, result.outcome, result.duration_us) == ("error", "lost", 0)
    assert result.message is not None
    assert f"lost {LOSSES} times" in result.message
    assert "split it" in result.message
    assert world.retrieve() == []


def test_a_chunk_that_is_given_back_counts_no_loss(world: World, ann: AccountRecord) -> None:
    """Many workers may drain, such as spot instances that end in good order."""
    package_id = world.start(ann, 1)
    for _ in range(3 * LOSSES):
        lease = world.lease()
        assert lease.attempt == 1
        world.give_back(lease, (0, 1), closes=True)
    world.work_all()
    assert world.status(ann, package_id).state == "completed"


def test_a_chunk_that_is_given_back_keeps_its_losses(world: World, ann: AccountRecord) -> None:
    """Otherwise a task would kill workers without end if workers in between gave it back, to run it alone."""
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
def test_a_task_that_was_nearly_given_up_ends_with_its_own_outcome(
    world: World, ann: AccountRecord, outcome: Outcome, state: str
) -> None:
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
