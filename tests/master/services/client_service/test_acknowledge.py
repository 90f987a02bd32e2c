import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cloudpar_master.adapters.aws.backend import POLICY as AWS_POLICY
from cloudpar_master.adapters.embedded import package_store
from cloudpar_master.adapters.embedded.blob_store import WASTE
from cloudpar_master.core.effects import RETRY_S
from cloudpar_master.core.head.package import PACKAGE_BYTES
from cloudpar_master.ports import AccountRecord, Opened
from cloudpar_master.services import client_service
from cloudpar_master.services.result_pages import EARLIER_KEPT_BYTES
from cloudpar_master.services.steps import finish
from cloudpar_master.services.timer import Timer
from cloudpar_protocol.client_messages import Acknowledge, ListPackages
from cloudpar_protocol.payloads import BlobData, BlobRef, TaskCode
from support.clock import NOW
from support.watched_world import WatchedWorld
from support.world import POLICY, World, publication

DAY_S = 86400.0
LARGE = TaskCode("0" * 64, bytes(POLICY.kept_bytes))
"""A package with this code is deleted when it is acknowledged, however small its data and results are."""


def blobs_of(tmp_path: Path) -> list[Path]:
    found: list[Path] = []
    for folder, folders, names in os.walk(tmp_path / "blobs"):
        folders[:] = [each for each in folders if each != WASTE]  # a thread removes files from there meanwhile
        found += [Path(folder, name) for name in names]
    return found


def test_an_acknowledged_package_is_deleted_and_says_when(world: World, ann: AccountRecord, tmp_path: Path) -> None:
    data = BlobData(BlobRef(f"data/{ann.account_id}/d", size=1_000))
    world.put(data.blob.key)
    package_id = world.start(ann, data=data)
    world.put(f"results/{package_id}/lease/0")
    world.work_all()
    assert len(blobs_of(tmp_path)) == 2
    world.clock.move(60)
    world.acknowledge(ann, package_id)
    assert blobs_of(tmp_path) == []
    assert world.backend.packages.pages(package_id, 0, 2**60, 10**9) == []
    status = world.status(ann, package_id)
    assert (status.state, status.results) == ("expired", [])
    assert status.message == "deleted at 2027-01-15 08:01:00 UTC: acknowledged by its client"
    assert status.progress.charged_us == 10_000


def test_an_await_during_which_another_client_acknowledges_says_that_the_results_are_gone(
    world: World, ann: AccountRecord
) -> None:
    """The master reads the head, then the other client acknowledges, then the master reads the results."""
    package_id = world.start(ann, tasks=4, code=LARGE)
    world.work_all()
    reader = WatchedWorld(world)
    pages = world.backend.packages.pages

    def pages_after_the_other_client(*args: Any) -> Any:
        world.acknowledge(ann, package_id)
        return pages(*args)

    reader.ports["packages"].instead["pages"] = pages_after_the_other_client
    status = reader.status(ann, package_id)
    assert (status.state, status.results, status.more) == ("expired", [], False)
    assert status.message is not None
    assert status.message.endswith("acknowledged by its client")


def test_an_await_beside_a_function_of_an_earlier_release_never_answers_with_some_results(
    world: World, ann: AccountRecord
) -> None:
    """During an update on AWS, a function of release 0.3.0 deletes a result page between two reads of a newer one.

    The newer release keeps the results of such a package for a day. The older release deletes them at once.
    """
    package_id = world.start(ann, tasks=4, chunksize=2)
    for lease in world.retrieve():
        world.publish(publication(lease, data=bytes(EARLIER_KEPT_BYTES // 4)))
    backend = world.backend._replace(policy=replace(POLICY, kept_bytes=AWS_POLICY.kept_bytes))
    reader = WatchedWorld(World(backend, world.clock))
    pages = world.backend.packages.pages

    def pages_after_the_earlier_release(*args: Any) -> Any:
        found = pages(*args)
        world.acknowledge(ann, package_id)
        return found[1:]

    reader.ports["packages"].instead["pages"] = pages_after_the_earlier_release
    status = reader.status(ann, package_id)
    assert (status.state, status.results) == ("expired", [])


def test_an_await_that_finds_some_result_pages_deleted_says_that_the_results_are_gone(
    world: World, ann: AccountRecord
) -> None:
    """Another master is deleting the pages one after the other."""
    package_id = world.start(ann, tasks=4, chunksize=2, code=LARGE)
    world.work_all()
    reader = WatchedWorld(world)
    found = world.backend.packages.pages(package_id, 0, 2**60, 10**9)
    assert len(found) == 2
    world.acknowledge(ann, package_id)
    head = world.head(package_id)
    before = replace(head, life=replace(head.life, acknowledged_at=None, deleted_at=None))
    reader.ports["packages"].instead |= {
        "open": lambda *_: Opened(before, [], more=False),
        "pages": lambda *_: found[1:],
    }
    status = reader.status(ann, package_id)
    assert (status.state, status.results) == ("expired", [])


def test_a_running_package_that_is_acknowledged_is_cancelled_first(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    lease = world.lease()
    world.acknowledge(ann, package_id)
    assert world.retrieve() == []
    assert world.extend(lease)[0].state == "ended"
    head = world.head(package_id)
    assert (head.life.state, head.life.reason, head.life.deleted_at) == ("cancelled", "acknowledged", None)
    world.publish(publication(lease, [0], outcome="cancelled", duration_us=70, closes=True))
    assert world.head(package_id).life.deleted_at == world.clock.now(), "nothing of it can run any more"
    assert world.record(ann.account_id).spent_us == 70


def test_an_acknowledged_package_may_be_unknown_or_deleted(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    world.work_all()
    world.acknowledge(ann, "nonsense", package_id, package_id)
    world.acknowledge(ann, package_id)
    assert world.head(package_id).life.deleted_at is not None


def test_a_tombstone_is_forgotten_after_a_day(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    world.work_all()
    world.acknowledge(ann, package_id)
    world.clock.move(DAY_S - 1)
    world.timer.tick()
    assert world.status(ann, package_id).state == "expired"
    world.clock.move(1)
    world.timer.tick()
    assert world.backend.packages.load(package_id) is None
    left = world.backend.packages._db.execute("SELECT count(*) FROM settlements")  # type: ignore[attr-defined]
    assert left.fetchone() == (0,), "rows that count for no account would fill the disk"
    assert "it was deleted over a day ago" in world.news(ann, package_id).missing[package_id]


def test_people_see_by_the_machines_clock_when_a_package_started_ended_and_was_deleted(
    world: World, ann: AccountRecord
) -> None:
    package_id = world.start(ann)
    world.clock.move(60)
    for lease in world.retrieve():
        world.publish(publication(lease))
    world.acknowledge(ann, package_id)
    world.clock.date_ahead_s = 86_400.0
    (listed,) = finish(world.client.list_packages(ann, ListPackages())).packages
    assert (listed.started_at, listed.ended_at) == (NOW + 86_400, NOW + 86_460)
    assert "deleted at 2027-01-16 08:01:00 UTC" in (world.status(ann, package_id).message or "")


def test_an_expired_package_says_when_and_why(world: World, ann: AccountRecord, tmp_path: Path) -> None:
    package_id = world.start(ann)
    world.put(f"results/{package_id}/lease/0")
    for lease in world.retrieve():
        world.publish(publication(lease, data=b"x" * 10_000))
    world.clock.move(POLICY.retention_s - 1)
    world.timer.tick()
    assert world.status(ann, package_id).state == "completed"
    world.clock.move(1)
    world.timer.tick()
    assert blobs_of(tmp_path) == []
    world.clock.move(3_600)
    status = world.status(ann, package_id)
    assert (status.state, status.reason, status.results) == ("expired", "expired", [])
    assert status.message == (
        "deleted at 2027-01-22 08:00:00 UTC: no client acknowledged it for 7 days after it ended (completed)"
    )


@pytest.mark.parametrize("end", ["timer", "await"])
def test_either_the_timer_or_an_await_expires_a_package(world: World, ann: AccountRecord, end: str) -> None:
    package_id = world.start(ann)
    world.work_all()
    world.clock.move(POLICY.retention_s)
    if end == "timer":
        world.timer.tick()
    assert world.status(ann, package_id).state == "expired"
    assert world.head(package_id).life.deleted_at == world.clock.now()


def test_a_list_shows_what_each_package_was_charged_and_why_it_failed(world: World, ann: AccountRecord) -> None:
    first = world.start(ann, name="crunch")
    world.work_all(duration_us=70)
    world.clock.move(1)
    second = world.start(ann)
    world.cancel(ann, second)
    newest, oldest = finish(world.client.list_packages(ann, ListPackages())).packages
    assert (oldest.package_id, oldest.name, oldest.state, oldest.progress.charged_us) == (
        first, "crunch", "completed", 700,
    )  # fmt: skip
    assert (oldest.reason, oldest.message) == (None, None)
    assert (newest.package_id, newest.state, newest.ended_at) == (second, "cancelled", world.clock.now())
    assert (newest.reason, newest.message) == ("cancelled", "cancelled by its account 'ann'")
    assert len(finish(world.client.list_packages(ann, ListPackages(limit=1))).packages) == 1


def test_a_worker_that_serves_two_packages_has_its_executors_counted_once(world: World, ann: AccountRecord) -> None:
    packages = [world.start(ann), world.start(ann)]
    leases = world.retrieve()
    for package_id in packages:
        first, second = [each for each in leases if each.package_id == package_id][:2]
        world.publish(publication(first, [first.start]), worker_id="first")
        world.publish(publication(second, [second.start]), worker_id="second")
    listed = finish(world.client.list_packages(ann, ListPackages()))
    assert [each.progress.executors for each in listed.packages] == [4, 4]
    assert listed.executors == 4
    for package_id in packages:
        world.cancel(ann, package_id)
    assert finish(world.client.list_packages(ann, ListPackages())).executors == 0


def test_packages_are_listed_and_acknowledged_in_steps(
    world: World, ann: AccountRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one step, a request for a thousand packages would delay all other requests."""
    monkeypatch.setattr(client_service, "LISTED", 2)
    package_ids = [world.start(ann) for _ in range(5)]
    listing = world.client.list_packages(ann, ListPackages())
    assert list(listing) == [None, None]
    assert len(list(world.client.acknowledge(ann, Acknowledge(package_ids=package_ids)))) == 5
    assert world.status(ann, package_ids[0]).state == "expired"


def test_what_a_small_package_stores_goes_with_its_tombstone_and_counts_as_its_records(
    world: World, ann: AccountRecord
) -> None:
    package_id = world.start(ann, tasks=4, code=TaskCode("0" * 64, bytes(500)))
    world.work_all()
    world.acknowledge(ann, package_id)
    assert (world.status(ann, package_id).state, world.status(ann, package_id).results) == ("expired", [])
    assert world.backend.packages.pages(package_id, 0, 2**60, 10**9)
    assert world.backend.packages.stored_bytes(ann.account_id) == PACKAGE_BYTES > POLICY.kept_bytes
    world.clock.move(POLICY.tombstone_s + 1)
    world.timer.tick()
    assert world.backend.packages.pages(package_id, 0, 2**60, 10**9) == []


def test_the_results_of_a_large_package_are_deleted_in_steps(
    world: World, ann: AccountRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package_store, "DELETED_BYTES", 1)
    package_id = world.start(ann, tasks=10, chunksize=1, code=LARGE)
    world.work_all()

    def pages() -> int:
        return len(world.backend.packages.pages(package_id, 0, 10**6, 10**9))

    before = pages()
    assert before > 3
    world.acknowledge(ann, package_id)
    assert pages() == before - 1
    assert world.head(package_id).life.deleted_at is None
    world.clock.move(RETRY_S)
    assert len(list(Timer(world.backend).tick())) == before + 1  # one more for the lost chunks
    assert pages() == 0
    assert world.head(package_id).life.deleted_at is not None
