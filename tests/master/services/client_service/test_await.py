import pytest
from msgspec.structs import replace

from cloudpar_master.core.head import SCHEMA
from cloudpar_master.ports import AccountRecord, Opened
from cloudpar_master.services.folding import STALE_S
from cloudpar_protocol import codec
from cloudpar_protocol.client_messages import AwaitTasks, Cursor
from cloudpar_protocol.errors import Unavailable
from cloudpar_protocol.limits import BODY_BYTES
from cloudpar_protocol.payloads import BlobRef, TaskResult
from cloudpar_protocol.worker_messages import Publication
from support.watched_world import WatchedWorld
from support.world import World, all_results, publication


def test_an_await_of_a_running_package_has_its_progress_and_a_delay(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    reply = world.news(ann, package_id)
    (status,) = reply.packages
    assert (status.state, status.results, status.more, status.settled) == ("running", [], False, False)
    assert (status.progress.tasks, status.progress.done) == (10, 0)
    assert reply.retry_after_s == 0.2


def test_results_come_as_they_are_committed_each_once(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    one, two = world.retrieve()
    world.publish(publication(two))
    first = world.status(ann, package_id)
    assert (first.state, all_results(first)) == ("running", [5, 6, 7, 8, 9])
    world.publish(publication(one))
    rest = world.status(ann, package_id, first.cursor)
    assert (rest.state, all_results(rest)) == ("completed", [0, 1, 2, 3, 4])
    assert all_results(world.status(ann, package_id, rest.cursor)) == []
    assert all_results(world.status(ann, package_id)) == [5, 6, 7, 8, 9, 0, 1, 2, 3, 4]


def test_an_await_with_new_results_has_no_delay(world: World, ann: AccountRecord) -> None:
    idle, busy = world.start(ann), world.start(ann)
    world.work(lease for lease in world.retrieve() if lease.package_id == busy)
    assert world.news(ann, idle).retry_after_s > 0
    assert world.news(ann, idle, busy).retry_after_s == 0


def test_failed_tasks_are_named_and_the_package_ends_with_an_error(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    one, two = world.retrieve()
    world.publish(publication(one, outcome="error"), publication(two))
    status = world.status(ann, package_id)
    assert (status.state, status.failed, status.progress.errors) == ("error", [(0, 5)], 5)
    assert (status.reason, status.settled) == (None, True)


def test_an_unknown_package_is_missing_and_others_have_their_status(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    reply = world.news(ann, "nonsense", package_id)
    assert [status.package_id for status in reply.packages] == [package_id]
    assert "it never was, or it was deleted over a day ago" in reply.missing["nonsense"]
    assert reply.retry_after_s == 0


def test_large_results_come_with_a_link_for_each_blob(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann, tasks=5)
    lease = world.lease()
    blob = BlobRef(f"results/{package_id}/{lease.lease_id}/0", size=10)
    results = [TaskResult(index, "ok", 1, blob=blob) for index in range(5)]
    world.publish(replace(publication(lease), results=results))
    status = world.status(ann, package_id)
    assert list(status.links) == [blob.key]
    assert status.links[blob.key].method == "GET"


# pages


def publish_all(world: World, data: bytes) -> None:
    while leases := world.retrieve():
        for lease in leases:
            world.publish(publication(lease, data=data))


def test_an_answer_is_no_larger_than_a_body_and_says_that_there_is_more(world: World, ann: AccountRecord) -> None:
    package_ids = [world.start(ann, tasks=20, chunksize=1) for _ in range(8)]
    publish_all(world, data=b"x" * 200_000)
    seen: dict[str, list[int]] = {package_id: [] for package_id in package_ids}
    cursors = dict.fromkeys(package_ids, 0)
    while any(len(indices) < 20 for indices in seen.values()):
        asked = [Cursor(package_id=package_id, cursor=cursor) for package_id, cursor in cursors.items()]
        reply = world.client.await_tasks(ann, AwaitTasks(packages=asked))
        assert len(codec.encode(reply)) < BODY_BYTES
        assert reply.retry_after_s == 0
        for status in reply.packages:
            seen[status.package_id] += all_results(status)
            cursors[status.package_id] = status.cursor
            assert status.more == (len(seen[status.package_id]) < 20)
    assert all(sorted(indices) == list(range(20)) for indices in seen.values())


def test_an_await_whose_pages_are_deleted_meanwhile_is_answered(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    world.work_all()
    opened = Opened(world.head(package_id), [], more=False)
    watched = WatchedWorld(world)
    watched.ports["packages"].instead["open"] = lambda *_: opened
    world.acknowledge(ann, package_id)
    world.backend.packages.delete_pages(package_id)
    status = watched.status(ann, package_id)
    assert (status.results, status.more, status.cursor) == ([], False, 0)
    assert world.status(ann, package_id).state == "expired"


def test_an_await_whose_package_is_removed_meanwhile_is_not_answered_as_completed(
    world: World, ann: AccountRecord
) -> None:
    package_id = world.start(ann)
    world.work_all()
    watched, opened = WatchedWorld(world), [Opened(world.head(package_id), [], more=False)]
    watched.ports["packages"].instead["open"] = lambda *_: opened.pop() if opened else None
    world.backend.packages.delete_pages(package_id)
    with pytest.raises(Unavailable, match="was removed meanwhile"):
        watched.status(ann, package_id)


def test_a_completed_package_of_a_newer_release_without_its_results_is_not_answered_as_completed(
    world: World, ann: AccountRecord
) -> None:
    package_id = world.start(ann)
    world.work_all()
    newer = replace(world.head(package_id), schema=SCHEMA + 1)
    watched = WatchedWorld(world)
    watched.ports["packages"].instead["open"] = lambda *_: Opened(newer, [], more=False)
    world.backend.packages.delete_pages(package_id)
    with pytest.raises(Unavailable):
        watched.status(ann, package_id)


# time


def leave_unfolded(world: World, made: Publication) -> None:
    """Publish at a master that loses its races, and so only stores the publication."""
    watched = WatchedWorld(world)
    watched.ports["packages"].instead["save"] = lambda *_: False
    with pytest.raises(Unavailable):
        watched.publish(made)


def test_an_await_folds_events_that_another_master_left(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    (lease, _) = world.retrieve()
    leave_unfolded(world, publication(lease))
    assert all_results(world.status(ann, package_id)) == []
    world.clock.move(STALE_S + 0.1)
    assert all_results(world.status(ann, package_id)) == [0, 1, 2, 3, 4]


def test_an_await_folds_a_head_from_a_master_whose_clock_is_ahead(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    one, two = world.retrieve()
    world.clock.move(100.0)
    world.publish(publication(one))
    world.clock.move(-100.0)
    leave_unfolded(world, publication(two))
    assert len(all_results(world.status(ann, package_id))) == 10
