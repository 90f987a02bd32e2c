"""The calls extend_leases, give_back and prepare_results."""

from collections import Counter

import pytest

from cloudpar_master.ports import AccountRecord
from cloudpar_protocol.errors import BadRequest
from cloudpar_protocol.worker_messages import GiveBack, LeaseView, PrepareResult, PrepareResults, Return
from support.packages import forget
from support.watched_world import WatchedWorld
from support.world import POLICY, World, publication


def test_an_extended_lease_stays_with_its_worker(world: World, ann: AccountRecord) -> None:
    world.start(ann)
    leases = world.retrieve("steady")
    for _ in range(5):
        world.clock.move(POLICY.lease_s * 0.9)
        views = world.extend(*leases)
        assert [(view.state, view.ranges, view.lease_s) for view in views] == [
            ("wanted", [(0, 5)], POLICY.lease_s), ("wanted", [(5, 10)], POLICY.lease_s),
        ]  # fmt: skip
        assert world.retrieve("other") == []
    world.clock.move(POLICY.lease_s + 1)
    assert len(world.retrieve("other")) == 2


def test_a_beat_for_a_finished_lease_is_answered_as_finished(world: World, ann: AccountRecord) -> None:
    world.start(ann)
    one, two = world.retrieve()
    world.publish(publication(one))
    assert [view.state for view in world.extend(one, two)] == ["finished", "wanted"]


def test_leases_of_a_completed_package_are_finished_and_of_a_cancelled_one_ended(
    world: World, ann: AccountRecord
) -> None:
    world.start(ann, tasks=5)
    cancelled = world.start(ann, tasks=5)
    one, two = world.retrieve()
    world.publish(publication(one))
    world.cancel(ann, cancelled)
    assert world.extend(one, two) == [
        LeaseView(lease_id=one.lease_id, state="finished"), LeaseView(lease_id=two.lease_id, state="ended"),
    ]  # fmt: skip


def test_a_hundred_leases_of_one_package_are_extended_with_few_calls(world: World, ann: AccountRecord) -> None:
    world.start(ann, tasks=100, chunksize=1)
    leases = world.retrieve_all(executors=100)
    assert len(leases) == 100
    watched = WatchedWorld(world)
    watched.extend(*leases)
    assert Counter(watched.calls) == {
        "packages.load": 1, "accounts.free_us": 1, "queue.extend": 1, "queue.express_waits": 1,
    }  # fmt: skip


def test_tasks_given_back_can_be_retrieved_at_once(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann, tasks=5)
    slow = world.lease("slow")
    world.give_back(slow, (2, 5))
    (again,) = world.retrieve("other")
    assert (again.start, again.end, again.ranges, again.attempt) == (2, 5, [(2, 5)], 1)
    assert world.extend(slow)[0].ranges == [(0, 2)]
    world.publish(publication(slow, [0, 1], closes=True), publication(again))
    assert world.status(ann, package_id).state == "completed"


def test_a_whole_lease_given_back_leaves_no_message(world: World, ann: AccountRecord) -> None:
    world.start(ann, tasks=5)
    world.give_back(world.lease(), (0, 5), closes=True)
    assert world.backend.queue.waiting() == 1
    again = world.lease()
    assert again.attempt == 1
    world.give_back(again, (0, 5), closes=True)
    world.clock.move(POLICY.lease_s + 1)
    assert world.backend.queue.waiting() == 1


@pytest.mark.parametrize("by", ["publication", "give-back"])
def test_tasks_whose_publication_was_refused_for_good_run_again_once_their_lease_is_closed(
    world: World, ann: AccountRecord, by: str
) -> None:
    """A proxy may refuse a publication that the master would take. The worker drops it and later closes the lease."""
    package_id = world.start(ann, tasks=5)
    lease = world.lease()
    if by == "publication":
        world.publish(publication(lease, [3, 4], seq=1, closes=True))
    else:
        world.give_back(lease, (3, 5), seq=1, closes=True)
    world.work_all()
    assert world.status(ann, package_id).state == "completed"
    assert world.backend.queue.waiting() == 0


def test_a_task_whose_result_is_refused_each_time_ends_as_lost_and_the_others_have_their_results(
    world: World, ann: AccountRecord
) -> None:
    package_id = world.start(ann, tasks=8, chunksize=8)
    for _ in range(20):
        for lease in world.retrieve(chunks=1):
            indices = [index for start, end in lease.ranges for index in range(start, end) if index != 3]
            world.publish(publication(lease, indices, closes=True))
    status = world.status(ann, package_id)
    assert (status.state, status.failed) == ("error", [(3, 4)])
    outcomes = {result.index: result.outcome for result in status.results}
    assert outcomes == {index: "lost" if index == 3 else "ok" for index in range(8)}


def test_one_request_gives_back_leases_of_several_packages(world: World, ann: AccountRecord) -> None:
    world.start(ann, tasks=5)
    world.start(ann, tasks=5)
    returns = [
        Return(
            **lease.identity(), seq=0, ranges=[(0, 5)], closes=True,
        )
        for lease in world.retrieve()
    ]  # fmt: skip
    world.worker.give_back(GiveBack(worker_id="w", returns=returns))
    assert world.backend.queue.waiting() == 2


def test_give_backs_of_ended_or_unknown_packages_are_answered(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann, tasks=5)
    lease = world.lease()
    world.cancel(ann, package_id)
    world.give_back(lease, (0, 5), closes=True)
    forget(world.backend.packages, package_id)
    world.give_back(lease, (0, 5), seq=1, closes=True)
    assert world.backend.queue.waiting() == 0


def test_the_key_of_a_large_result_names_its_lease(world: World) -> None:
    asked = [PrepareResult(package_id="p", lease_id="l", seq=seq, size=9, crc32=1) for seq in (0, 1)]
    one, two = world.worker.prepare_results(PrepareResults(results=asked)).results
    assert (one.key, two.key) == ("results/p/l/0", "results/p/l/1")
    assert (one.link.method, two.link.method) == ("PUT", "PUT")


@pytest.mark.parametrize(
    ("package_id", "lease_id"), [("p/q", "l"), ("..", "l"), ("p", "l/"), ("p", "\x00"), ("é", "l")]
)
def test_an_upload_for_ids_that_no_master_makes_is_refused(world: World, package_id: str, lease_id: str) -> None:
    asked = PrepareResult(package_id=package_id, lease_id=lease_id, seq=0, size=9, crc32=1)
    with pytest.raises(BadRequest, match="as the lease says them"):
        world.worker.prepare_results(PrepareResults(results=[asked]))
