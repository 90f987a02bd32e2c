import pytest

from cloudpar_master.core.head import CANCELLED_RANGES
from cloudpar_master.ports import AccountRecord
from cloudpar_protocol.errors import BadRequest, NotFound
from support.world import POLICY, World, all_results, publication


def test_a_cancelled_package_never_runs(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    for _ in range(2):
        reply = world.cancel(ann, package_id)
        assert (reply.state, reply.cancelled, reply.charged_us) == ("cancelled", [(0, 10)], 0)
    assert world.retrieve() == []
    assert world.backend.queue.waiting() == 0
    status = world.status(ann, package_id)
    assert (status.state, status.reason, status.message) == ("cancelled", "cancelled", "cancelled by its account 'ann'")


def test_running_tasks_of_a_cancelled_package_are_stopped_and_charged_once(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    one, _ = world.retrieve()
    world.publish(publication(one, [0, 1], duration_us=100))
    assert world.cancel(ann, package_id).cancelled == [(2, 10)]
    (view,) = world.extend(one)
    assert view.state == "ended"
    stopped = publication(one, [2, 3], outcome="cancelled", duration_us=50, seq=1, closes=True)
    for _ in range(3):
        (view,) = world.publish(stopped).leases
        assert view.state == "ended"
    world.settle()
    status = world.status(ann, package_id)
    assert (all_results(status), status.settled, status.progress.charged_us) == ([0, 1], True, 300)
    account = world.record(ann.account_id)
    assert (account.spent_us, account.reserved_us) == (300, 0)


def test_some_tasks_are_cancelled_and_the_others_have_results(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    (lease, other) = world.retrieve()
    reply = world.cancel(ann, package_id, ranges=[(1, 3), (8, 20)])
    assert (reply.state, reply.cancelled) == ("running", [(1, 3), (8, 10)])
    (view,) = world.extend(lease)
    assert (view.state, view.ranges) == ("wanted", [(0, 1), (3, 5)])
    world.publish(publication(lease), publication(other))
    status = world.status(ann, package_id)
    assert (status.state, status.cancelled, all_results(status)) == ("completed", [(1, 3), (8, 10)], [0, 3, 4, 5, 6, 7])


def test_only_queued_tasks_are_cancelled_if_the_client_says_so(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann, tasks=100)
    lease = world.lease()
    reply = world.cancel(ann, package_id, only_queued=True)
    assert (reply.state, reply.cancelled) == ("running", [(40, 100)])
    assert world.retrieve() == []
    assert world.extend(lease)[0].state == "wanted"
    world.publish(publication(lease))
    status = world.status(ann, package_id)
    assert (status.state, status.cancelled, all_results(status)) == ("completed", [(5, 100)], [0, 1, 2, 3, 4])


def test_tasks_of_a_draining_package_that_a_dead_worker_had_run_again(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    world.lease()
    world.cancel(ann, package_id, only_queued=True)
    world.clock.move(POLICY.lease_s + 1)
    (again,) = world.retrieve()
    assert (again.start, again.attempt) == (0, 2)
    world.publish(publication(again))
    assert world.status(ann, package_id).state == "completed"


def test_cancelling_an_ended_package_says_how_it_ended(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    world.work_all()
    reply = world.cancel(ann, package_id)
    assert (reply.state, reply.cancelled, reply.charged_us) == ("completed", [], 10_000)
    assert world.cancel(ann, package_id, ranges=[(0, 5)]).cancelled == []


def test_tasks_of_a_cancelled_package_are_cancelled_also_when_some_are_named(world: World, ann: AccountRecord) -> None:
    """A client repeats a cancellation of some tasks whose answer was lost. Meanwhile another one cancelled all."""
    package_id = world.start(ann, tasks=100)
    world.publish(publication(world.lease(), [0]))
    world.cancel(ann, package_id)
    reply = world.cancel(ann, package_id, ranges=[(0, 3), (98, 200)])
    assert (reply.state, reply.cancelled) == ("cancelled", [(1, 3), (98, 100)])


def test_a_repeated_cancellation_has_the_same_answer(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    assert world.cancel(ann, package_id) == world.cancel(ann, package_id)


def test_an_unknown_package_cannot_be_cancelled(world: World, ann: AccountRecord) -> None:
    with pytest.raises(NotFound, match="no package nonsense is visible to this token"):
        world.cancel(ann, "nonsense")


def test_a_cancellation_in_too_many_places_is_refused(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann, tasks=10_000)
    places = [(start, start + 1) for start in range(5_000, 5_000 + 4 * CANCELLED_RANGES, 4)]
    for start in range(0, CANCELLED_RANGES, 100):
        world.cancel(ann, package_id, ranges=places[start : start + 100])
    with pytest.raises(BadRequest, match="in over 200 places were cancelled: cancel the whole package instead"):
        world.cancel(ann, package_id, ranges=[(9_000, 9_001)])
    assert world.head(package_id).life.state == "running"


def test_a_cancellation_of_too_scattered_tasks_is_refused(
    world: World, ann: AccountRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloudpar_master.core.head.tasks.ENTRIES", 560)
    monkeypatch.setattr("cloudpar_master.core.fold.open_ranges.ENTRIES", 560)
    monkeypatch.setattr("cloudpar_master.core.fold.open_ranges.RESERVED", 120)
    package_id = world.start(ann, tasks=10_000, chunksize=20)
    world.retrieve(executors=10_000)
    world.work(world.retrieve(executors=10_000))
    world.retrieve(executors=10_000)
    assert len(world.head(package_id).tasks.open) == 560 - 120
    first = world.head(package_id).tasks.open[100].start
    with pytest.raises(BadRequest, match="too scattered among those that run: cancel the whole package instead"):
        world.cancel(ann, package_id, ranges=[(start, start + 1) for start in range(first + 5, first + 2_000, 20)])
    assert world.head(package_id).tasks.cancelled == []


def test_ranges_and_only_queued_together_are_refused(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    with pytest.raises(BadRequest, match="`ranges` and `only_queued` exclude each other: send one of them"):
        world.cancel(ann, package_id, ranges=[(0, 1)], only_queued=True)
