"""Chunks for all executors of a worker, and fewer requests and writes, as on AWS."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from cloudpar_master.ports import AccountRecord, Sending
from cloudpar_master.services.steps import finish
from cloudpar_protocol.worker_messages import Lease, LeaseRef, PublishResults, RetrieveTasks
from support.watched_world import WatchedWorld
from support.world import POLICY, World, master, publication

SHARED = replace(POLICY, shares_chunks=True, saves_first_sent=True, looks_at_end=False)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with master(tmp_path, policy=SHARED) as made:
        yield made


@pytest.fixture
def ann(world: World) -> AccountRecord:
    return world.account()


def retrieve(world: World, chunks: int, *, idle: bool) -> list[Lease]:
    name = f"attempt {next(world.numbers)}"
    request = RetrieveTasks(attempt_id=name, worker_id="w", executors=2, chunks=chunks, idle=idle)
    return world.worker.retrieve_tasks(request).leases


def test_a_worker_without_leases_gets_a_single_chunk(world: World, ann: AccountRecord) -> None:
    """It does not know how long a chunk keeps all of its executors busy."""
    world.start(ann, 100)
    assert [len(retrieve(world, chunks=8, idle=idle)) for idle in (True, False)] == [1, 2]


def test_a_lease_says_how_often_its_worker_calls(world: World, ann: AccountRecord) -> None:
    world.start(ann, 100)
    assert world.lease().beat_s == 5.0


def publish_and_renew(world: World, lease: Lease, *others: Lease) -> set[str]:
    """Publish a result of one lease, renew this lease and others, and return the ids of the leases with a view."""
    refs = [LeaseRef(**other.identity()) for other in others]
    made = publication(lease, [lease.start])
    request = PublishResults(worker_id="w", executors=2, publications=[made], others=refs)
    return {view.lease_id for view in finish(world.worker.publish_results(request)).leases}


def test_a_publication_renews_the_leases_that_it_names(world: World, ann: AccountRecord) -> None:
    world.start(ann, 20)
    one, two, forgotten = retrieve(world, 2, idle=False) + retrieve(world, 1, idle=False)
    world.clock.move(POLICY.lease_s - 1)
    assert publish_and_renew(world, one, two) == {one.lease_id, two.lease_id}
    world.clock.move(POLICY.lease_s - 1)
    again = [lease.start for lease in retrieve(world, 2, idle=False) + retrieve(world, 2, idle=False)]
    assert forgotten.start in again
    assert not {one.start + 1, one.start, two.start} & set(again)


def test_a_publication_of_an_earlier_release_renews_nothing(world: World, ann: AccountRecord) -> None:
    world.start(ann, 5)
    lease = world.lease()
    world.clock.move(POLICY.lease_s - 1)
    world.publish(publication(lease, [lease.start]))
    world.clock.move(1.5)
    assert [each.start for each in world.retrieve()] == [lease.start]


def test_the_head_of_a_package_is_saved_once_for_each_publication(world: World, ann: AccountRecord) -> None:
    watched = WatchedWorld(world)
    package_id = watched.start(ann, 1_000)
    first, second = retrieve(watched, 2, idle=False)
    watched.calls.clear()
    watched.publish(publication(first))
    saves = [call for call in watched.calls if call in {"packages.save", "queue.send"}]
    assert saves == ["packages.save", "queue.send"]
    assert len(world.head(package_id).tasks.unsent) > 0
    watched.publish(publication(second))
    assert {each.generation for each in world.head(package_id).tasks.unsent} == {world.head(package_id).version}


def test_chunks_that_no_head_shows_as_sent_are_sent_again_and_run_once(world: World, ann: AccountRecord) -> None:
    """Another process folds the package: it does not know that the chunks are in the queue."""
    package_id = world.start(ann, 1_000)
    first, second = retrieve(world, 2, idle=False)
    world.publish(publication(first))
    World(world.backend, world.clock).publish(publication(second))
    assert not world.head(package_id).tasks.unsent
    starts = [lease.start for lease in world.retrieve_all()]
    assert len(starts) == len(set(starts)) > 0


def test_a_chunk_that_another_process_sends_again_goes_by_the_same_queue(world: World, ann: AccountRecord) -> None:
    """The express queue has no copies of the main queue's chunks to drop. Here the package's rest fits into one chunk
    before the second process folds it."""
    sent: dict[str, set[bool]] = {}
    send = world.backend.queue.send

    def record(messages: Sequence[Sending]) -> list[bool]:
        for message in messages:
            sent.setdefault(message.group, set()).add(message.express)
        return send(messages)

    world.backend.queue.send = record  # type: ignore[method-assign]
    package_id = world.start(ann, 300)
    first, second = retrieve(world, 2, idle=False)
    world.publish(publication(first))
    assert world.head(package_id).tasks.unsent
    world.publish(publication(second, duration_us=1))
    for _ in range(40):
        other = World(world.backend, world.clock)
        other.work(other.retrieve(executors=2, chunks=1), duration_us=1)
    assert all(len(queues) == 1 for queues in sent.values())
    assert {queue for queues in sent.values() for queue in queues} == {True, False}


def test_the_timer_records_that_chunks_were_sent(world: World, ann: AccountRecord) -> None:
    """The queue drops a copy of a chunk for five minutes only."""
    package_id = world.start(ann, 1_000)
    world.publish(publication(world.lease()))
    assert world.head(package_id).tasks.unsent
    world.clock.move(SHARED.send_again_s + 1)
    assert world.timer.tick() == 1
    assert not world.head(package_id).tasks.unsent
