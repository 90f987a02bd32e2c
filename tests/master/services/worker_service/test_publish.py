from msgspec.structs import replace

from cloudpar_master.ports import AccountRecord
from support.world import POLICY, World, all_results, publication


def test_one_request_publishes_leases_of_several_packages(world: World, ann: AccountRecord, bob: AccountRecord) -> None:
    package_ids = [world.start(ann), world.start(bob)]
    leases = world.retrieve()
    reply = world.publish(*map(publication, leases))
    assert [view.lease_id for view in reply.leases] == [lease.lease_id for lease in leases]
    assert {view.state for view in reply.leases} == {"finished"}
    assert world.status(ann, package_ids[0]).state == world.status(bob, package_ids[1]).state == "completed"


def test_the_reply_to_a_partial_publication_names_the_tasks_still_wanted(world: World, ann: AccountRecord) -> None:
    world.start(ann, tasks=5)
    lease = world.lease()
    (view,) = world.publish(publication(lease, [0, 3])).leases
    assert (view.state, view.ranges, view.lease_s) == ("wanted", [(1, 3), (4, 5)], POLICY.lease_s)
    assert view.budget_us == ann.granted_us - 2_000


def test_a_task_that_a_mistaken_worker_stopped_runs_again(world: World, ann: AccountRecord) -> None:
    """Its lease ran out and another worker gave the task back, so the master says that it does not want the task."""
    package_id = world.start(ann, tasks=5)
    late = world.lease("late")
    world.clock.move(POLICY.lease_s + 1)
    world.give_back(world.lease("other"), (0, 5), closes=True)
    assert world.extend(late)[0].state == "finished"
    world.publish(publication(late, [2], outcome="cancelled", closes=True))
    world.work_all()
    status = world.status(ann, package_id)
    assert (status.state, status.progress.errors, sorted(all_results(status))) == ("completed", 0, [0, 1, 2, 3, 4])


def test_a_worker_of_another_python_fails_the_package_and_says_why(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    lease = world.lease()
    refusal = publication(lease, [], refused="python", message="needs 3.11, runs 3.14", closes=True)
    (view,) = world.publish(refusal).leases
    assert view.state == "ended"
    status = world.status(ann, package_id)
    assert (status.state, status.reason, status.message) == ("failed", "python", "needs 3.11, runs 3.14")
    assert world.retrieve() == []
    world.settle()
    assert world.record(ann.account_id).spent_us == 0


def test_a_publication_for_an_unknown_package_is_answered(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    lease = world.lease()
    made = replace(publication(lease), package_id="unknown")
    (view,) = world.publish(made).leases
    assert view.state == "ended"
    assert world.head(package_id).tasks.done == 0


def test_a_worker_learns_that_another_one_idles(world: World, ann: AccountRecord) -> None:
    world.start(ann, tasks=5)
    lease = world.lease("busy")
    assert not world.publish(publication(lease, [0]), worker_id="busy").hungry
    assert world.retrieve("idle") == []
    assert world.publish(publication(lease, [1], seq=1), worker_id="busy").hungry
    assert not world.publish(publication(lease, [2], seq=2), worker_id="idle").hungry
    world.clock.move(60.0)
    assert not world.publish(publication(lease, [3], seq=3), worker_id="busy").hungry


def test_the_costs_of_transport_are_summed(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann, tasks=5)
    lease = world.lease()
    world.publish(publication(lease, retrieve_us=30, publish_us=4))
    progress = world.status(ann, package_id).progress
    assert (progress.execute_us, progress.retrieve_us, progress.publish_us) == (5_000, 30, 4)
