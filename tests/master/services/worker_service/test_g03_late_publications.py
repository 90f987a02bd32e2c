"""What a worker publishes after its leases ran out and another one has finished, on every adapter."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from aws.in_process import in_process, remove
from aws.stores import on_dynamodb_local, on_elasticmq, on_ministack
from cloudpar_master.ports import AccountRecord
from cloudpar_protocol.payloads import BlobRef
from cloudpar_protocol.worker_messages import Lease, Publication
from support.scale import SCALE, Scale
from support.stores import Factory, embedded
from support.world import POLICY, World, master, publication

QUICK: list[Factory] = [embedded, in_process]
FULL: list[Factory] = [*QUICK, on_dynamodb_local, on_elasticmq, on_ministack]


@pytest.fixture(params=SCALE(QUICK, FULL), ids=lambda factory: str(factory.__name__))
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    with master(tmp_path, factory=request.param) as world:
        yield world
    if request.param is in_process:
        remove(tmp_path)


def retrieve_all(world: World, worker_id: str, chunks: int) -> list[Lease]:
    """Retrieve this many chunks, in order. A queue may need some time to show them."""
    leases: list[Lease] = []
    while len(leases) < chunks:
        leases += world.retrieve(worker_id)
    return sorted(leases, key=lambda lease: lease.start)


def let_run_out(world: World, *leases: Lease) -> None:
    """Let these leases run out, also at a queue that uses the real time."""
    world.clock.move(POLICY.lease_s + 1)
    world.backend.queue.extend([lease.receipt for lease in leases], 0.0)


def books(world: World, ann: AccountRecord, package_id: str) -> Any:
    """Return all that a late publication must not change."""
    status, account = world.status(ann, package_id), world.record(ann.account_id)
    results = sorted(status.results, key=lambda result: result.index)
    progress = status.progress
    return status.state, results, progress.done, progress.charged_us, progress.execute_us, account


def large(made: Publication) -> Publication:
    """Return a publication with uploaded results."""
    key = f"results/{made.package_id}/{made.lease_id}/0"
    return replace(made, results=[replace(each, data=None, blob=BlobRef(key, 9)) for each in made.results])


def test_g03_late_publications_change_nothing(
    world: World, scale: Scale, request: pytest.FixtureRequest, reached: Callable[[str], None]
) -> None:
    ann, late, charged_us = world.account(), 0, 0
    for number in range(scale(5, 50)):
        package_id = world.start(ann)
        zombies = retrieve_all(world, "zombie", 2)
        let_run_out(world, *zombies)
        rivals = retrieve_all(world, "rival", 2)
        for zombie, rival in zip(zombies, rivals, strict=True):
            dead = publication(zombie, data=b"zombie", duration_us=99)
            live = publication(rival, data=b"rival", duration_us=10 + number)
            if number % 2:
                dead, live = large(dead), large(live)
            world.publish(live, worker_id="rival")
            before = books(world, ann, package_id)
            (view,) = world.publish(dead, worker_id="zombie").leases
            assert view.state == "finished"
            assert books(world, ann, package_id) == before
            late += 1
        charged_us += 10 * (10 + number)
        status = world.status(ann, package_id)
        assert (status.state, status.progress.charged_us) == ("completed", 10 * (10 + number))
        committed = {result.data or (result.blob and result.blob.key.split("/")[2]) for result in status.results}
        assert committed <= {b"rival", *(rival.lease_id for rival in rivals)}
    account = world.record(ann.account_id)
    assert (account.spent_us, account.reserved_us) == (charged_us, 0)
    adapter = request.node.callspec.id.removeprefix("on_")
    reached(f"{late}/{late} late publications changed nothing ({adapter})")


def test_g03_of_two_workers_with_the_same_chunk_the_first_result_of_each_task_counts(world: World) -> None:
    ann = world.account()
    package_id = world.start(ann, tasks=5)
    (one,) = retrieve_all(world, "one", 1)
    let_run_out(world, one)
    (two,) = retrieve_all(world, "two", 1)
    world.publish(publication(one, [0, 1, 2], data=b"one"))
    world.publish(publication(two, [1, 2, 3], data=b"two"))
    (view,) = world.extend(two)
    assert view.ranges == [(4, 5)]
    world.publish(publication(one, [3, 4], data=b"one", seq=1))
    status = world.status(ann, package_id)
    assert len(status.results) == 5
    assert {result.index: result.data for result in status.results} == {
        0: b"one", 1: b"one", 2: b"one", 3: b"two", 4: b"one",
    }  # fmt: skip
    assert world.record(ann.account_id).spent_us == 5_000
