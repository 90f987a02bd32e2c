"""Restoring the data folder of a local master, and packages whose messages the queue has lost."""

import shutil
from pathlib import Path

from cloudpar_master.core.fold.resending import quiet_s
from cloudpar_master.ports import AccountRecord
from support.world import POLICY, World, all_results, master, publication

TASKS = 10
QUIET_S = quiet_s(POLICY)


def lose_messages(world: World) -> None:
    """Empty the queue behind the master's back."""
    world.backend.queue._db.execute("DELETE FROM messages")  # type: ignore[attr-defined]


def assert_completes(world: World, account: AccountRecord, package_id: str) -> None:
    world.work_all()
    status = world.status(account, package_id)
    assert status.state == "completed"
    assert sorted(all_results(status)) == list(range(TASKS))
    assert world.record(account.account_id).spent_us == TASKS * 1_000


def test_a_package_of_a_copied_folder_continues_at_once(tmp_path: Path) -> None:
    folder, copy = tmp_path / "data", tmp_path / "copy"
    folder.mkdir()
    with master(folder) as world:
        ann = world.account("ann")
        package_id = world.start(ann, tasks=TASKS)
        lease = world.lease()
        world.publish(publication(lease, [lease.start]))
    shutil.copytree(folder, copy)
    with master(folder) as world:
        world.publish(publication(lease, range(lease.start + 1, lease.end), seq=1, closes=True))
        world.work_all()
        assert world.status(ann, package_id).state == "completed"
    with master(copy) as world:
        world.clock.move(POLICY.lease_s)
        assert_completes(world, ann, package_id)


def test_a_package_whose_messages_are_lost_is_sent_again(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann, tasks=TASKS)
    lose_messages(world)
    assert world.retrieve() == []
    world.clock.move(QUIET_S)
    world.timer.tick()
    assert_completes(world, ann, package_id)


def test_a_chunk_that_waits_for_a_worker_for_hours_is_handed_out_once(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann, tasks=TASKS)
    for _ in range(3):
        world.clock.move(QUIET_S)
        world.timer.tick()
    chunks = [(lease.start, lease.end) for lease in world.retrieve_all()]
    assert sorted(chunks) == [(0, 5), (5, 10)]
    world.clock.move(POLICY.lease_s)
    assert_completes(world, ann, package_id)


def test_a_worker_keeps_a_chunk_that_is_sent_again_while_it_runs(world: World, ann: AccountRecord) -> None:
    world.start(ann, tasks=5)
    lease = world.lease()
    world.clock.move(QUIET_S)
    world.extend(lease)
    world.timer.tick()
    assert world.retrieve("other") == []
    (view,) = world.extend(lease)
    assert (view.state, view.ranges) == ("wanted", [(0, 5)])
