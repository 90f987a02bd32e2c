import pytest

from cloudpar_master.core.quota import FIRST_SLICE_US
from cloudpar_master.ports import AccountRecord
from cloudpar_protocol.client_messages import PrepareUploads, Upload
from cloudpar_protocol.errors import IdempotencyConflict, NotFound, QuotaExhausted
from cloudpar_protocol.payloads import BlobData, BlobRef, TaskCode
from support.watched_world import WatchedWorld
from support.world import HOUR_US, World, start_tasks


def test_a_started_package_has_chunks_in_the_queue(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann, tasks=12)
    assert world.backend.queue.waiting() == 3
    head = world.head(package_id)
    assert (head.life.state, head.tasks.cursor, head.account_id) == ("running", 12, ann.account_id)
    assert world.record(ann.account_id).reserved_us == FIRST_SLICE_US


@pytest.mark.parametrize("changes", [{"tasks": 11}, {"call": "args"}, {"python": "3.14"}, {"name": "other"}])
def test_the_same_key_with_another_body_is_a_conflict(
    world: World, ann: AccountRecord, changes: dict[str, object]
) -> None:
    world.client.start_tasks(ann, start_tasks("key"))
    with pytest.raises(IdempotencyConflict, match="make a new key for each package"):
        world.client.start_tasks(ann, start_tasks("key", **changes))  # type: ignore[arg-type]
    assert len(list(world.backend.packages.of_account(ann.account_id, 10))) == 1


def test_a_package_starts_only_if_its_data_was_uploaded(world: World, ann: AccountRecord) -> None:
    """No worker could run it, and meanwhile it would hold its account's compute time."""
    blob = BlobRef(f"data/{ann.account_id}/{'0' * 64}", size=1_000)
    request = start_tasks("key", data=BlobData(blob))
    with pytest.raises(NotFound, match="upload it by the link of prepare_uploads"):
        world.client.start_tasks(ann, request)
    assert world.record(ann.account_id).reserved_us == 0
    world.put(blob.key)
    package_id = world.client.start_tasks(ann, request).package_id
    world.backend.blobs.delete(blob.key)
    assert world.client.start_tasks(ann, request).package_id == package_id, "a repeated request is not refused"


def test_a_package_starts_only_if_its_code_was_uploaded(world: World, ann: AccountRecord) -> None:
    """Each worker would lose a lease with it, and the master would suspect its chunks of killing workers."""
    blob = BlobRef(f"code/{ann.account_id}/{'0' * 64}", size=1_000)
    request = start_tasks("key", code=TaskCode("0" * 64, blob=blob))
    with pytest.raises(NotFound, match=f"nothing was uploaded as '{blob.key}': upload it by the link"):
        world.client.start_tasks(ann, request)
    assert world.record(ann.account_id).reserved_us == 0
    world.put(blob.key)
    package_id = world.client.start_tasks(ann, request).package_id
    world.backend.blobs.delete(blob.key)
    assert world.client.start_tasks(ann, request).package_id == package_id, "a repeated request is not refused"


def test_the_start_of_a_package_without_blobs_looks_for_none(
    world: World, ann: AccountRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On AWS it would cost a request."""
    monkeypatch.setattr(world.backend.blobs, "exists", lambda *_, **__: pytest.fail("a request"))
    world.start(ann)


def test_task_code_is_kept_for_a_client_until_it_has_started_its_package_and_no_longer(
    world: World, ann: AccountRecord
) -> None:
    prepare = PrepareUploads(uploads=[Upload(kind="code", size=7, crc32=0, hash="0" * 64)])
    (prepared,) = world.client.prepare_uploads(ann, prepare).uploads
    world.put(prepared.key)
    assert world.client.prepare_uploads(ann, prepare).uploads[0].link is None
    promises = world.backend.blobs._code._promises  # type: ignore[attr-defined]
    assert len(promises) == 1
    world.start(ann, code=TaskCode("0" * 64, blob=BlobRef(prepared.key, 7)))
    assert not promises


def test_a_start_without_quota_queues_nothing(world: World) -> None:
    poor = world.account("poor", quota_us=0)
    with pytest.raises(QuotaExhausted, match="'poor' has used its 0 s of compute time: ask the operator to grant more"):
        world.start(poor)
    assert world.backend.queue.waiting() == 0
    assert list(world.backend.packages.of_account(None, 10)) == []


def test_a_grant_counts_at_once_for_a_master_that_remembers_the_account(world: World) -> None:
    remembered = world.account("poor", quota_us=0)
    world.backend.accounts.grant(remembered.account_id, "more", HOUR_US)
    world.start(remembered)
    assert world.backend.queue.waiting() == 2


def test_a_retry_is_answered_even_when_the_quota_is_used_up_since(world: World) -> None:
    poor = world.account("poor", quota_us=10_000)
    package_id = world.client.start_tasks(poor, start_tasks("key")).package_id
    world.work_all()
    assert world.record(poor.account_id).spent_us == 10_000
    again = world.client.start_tasks(world.record(poor.account_id), start_tasks("key"))
    assert again.package_id == package_id


@pytest.mark.parametrize("crash", ["accounts.reserve", "packages.save", "queue.send"])
def test_a_package_whose_start_crashed_goes_on_with_the_timer(world: World, ann: AccountRecord, crash: str) -> None:
    def fail(*args: object, **more: object) -> None:
        raise OSError(crash)

    watched = WatchedWorld(world)
    port, _, call = crash.partition(".")
    watched.ports[port].instead[call] = fail
    with pytest.raises(OSError, match=crash):
        watched.client.start_tasks(ann, start_tasks("key"))
    package_id = world.client.start_tasks(ann, start_tasks("key")).package_id
    world.clock.move(3.0)
    world.timer.tick()
    world.work_all()
    assert world.status(ann, package_id).state == "completed"
    assert world.record(ann.account_id).spent_us == 10_000


def test_a_million_tasks_make_the_same_port_calls_as_a_hundred(world: World, ann: AccountRecord) -> None:
    made = []
    for tasks in (100, 1_000_000):
        watched = WatchedWorld(world)
        watched.start(ann, tasks, chunksize=None)
        made.append(watched.calls)
    assert made[0] == made[1]
    assert len(made[0]) < 15
