from cloudpar_master.ports import AccountRecord
from support.packages import forget
from support.world import POLICY, World


def kill_workers(world: World) -> None:
    """Let every worker die with its chunk, until the queue gives the chunk up."""
    while world.retrieve():
        world.clock.move(POLICY.lease_s + 1)


def test_a_chunk_whose_workers_die_is_halved(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann, tasks=5)
    kill_workers(world)
    assert world.timer.tick() == 1
    assert [(chunk.start, chunk.end) for chunk in world.head(package_id).tasks.open] == [(0, 3), (3, 5)]
    assert world.backend.queue.dead(10) == []
    assert {lease.attempt for lease in world.retrieve()} == {1}


def test_a_lost_chunk_of_a_forgotten_package_is_removed(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann, tasks=5)
    for _ in range(4):
        world.backend.queue.receive(1, POLICY.lease_s, "")
        world.clock.move(POLICY.lease_s + 1)
        world.backend.queue.receive(0, POLICY.lease_s, "other")
    forget(world.backend.packages, package_id)
    world.timer.tick()
    assert world.backend.queue.dead(10) == []


def test_a_tick_returns_how_much_there_was_to_do(world: World, ann: AccountRecord) -> None:
    assert world.timer.tick() == 0
    for _ in range(3):
        world.start(ann)
    world.clock.move(POLICY.lifetime_s)
    assert world.timer.tick() == 3
    assert world.timer.tick() == 0


def test_a_package_that_no_client_awaits_ends(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    world.lease()
    world.clock.move(POLICY.lifetime_s)
    world.timer.tick()
    assert (world.head(package_id).life.state, world.head(package_id).life.settled) == ("failed", False)
    world.settle()
    assert world.head(package_id).life.settled
    assert world.record(ann.account_id).reserved_us == 0
