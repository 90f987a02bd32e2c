"""Guarantee 17, what an account may store: above it, uploads and starts wait, and results are still taken."""

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cloudpar_master.core.head import BLOB_BYTES
from cloudpar_master.core.head.package import PACKAGE_BYTES
from cloudpar_master.core.policy import Policy
from cloudpar_master.ports import AccountRecord
from cloudpar_master.services import bodies, stored_bytes
from cloudpar_master.services.client_service import ClientService
from cloudpar_master.services.stored_bytes import READ_S, REREAD_S, UPLOAD_BYTES, WAIT_S, StoredBytes
from cloudpar_protocol.client_messages import PreparedUpload, PrepareUploads, Upload
from cloudpar_protocol.errors import RateLimited, TooLarge, Unavailable
from cloudpar_protocol.limits import INLINE_ITEM_BYTES, LINK_S
from cloudpar_protocol.payloads import BlobData, BlobRef, InlineData, TaskCode, TaskResult
from cloudpar_protocol.worker_messages import Publication
from support.world import World, master, start_tasks

MIB = 1024**2
LIMIT = 10 * MIB
POLICY = Policy(stored_bytes=LIMIT)
HASH = "1" * 64


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with master(tmp_path, POLICY) as world:
        yield world


def prepare(world: World, account: AccountRecord, size: int, key: str | None = None) -> PreparedUpload:
    request = PrepareUploads(uploads=[Upload(kind="data", size=size, crc32=0, key=key)])
    return world.client.prepare_uploads(account, request).uploads[0]


def prepare_code(world: World, account: AccountRecord, size: int) -> PreparedUpload:
    request = PrepareUploads(uploads=[Upload(kind="code", size=size, crc32=0, hash=HASH)])
    return world.client.prepare_uploads(account, request).uploads[0]


def upload(world: World, account: AccountRecord, size: int) -> str:
    """Upload task data; return its key."""
    key = prepare(world, account, size).key
    world.put(key)
    with world.backend.blobs._path(key).open("r+b") as file:  # type: ignore[attr-defined]
        file.truncate(size)
    return key


def stored(world: World, account: AccountRecord) -> int:
    return StoredBytes(world.backend).total(account.account_id)


def is_refused(world: World, account: AccountRecord, size: int = UPLOAD_BYTES) -> bool:
    try:
        prepare(world, account, size)
    except RateLimited:
        return True
    return False


def test_g17_a_refused_request_for_several_uploads_keeps_no_room(world: World, ann: AccountRecord) -> None:
    """A client repeats a request that has to wait. One of its two uploads has room each time."""
    several = PrepareUploads(uploads=[Upload(kind="data", size=6 * MIB, crc32=0) for _ in range(2)])
    for _ in range(3):
        with pytest.raises(RateLimited):
            world.client.prepare_uploads(ann, several)
    prepare(world, ann, LIMIT)


def test_g17_uploads_that_no_package_uses_count(
    world: World, ann: AccountRecord, bob: AccountRecord, reached: Callable[[str], None]
) -> None:
    for _ in range(4):
        upload(world, ann, 2 * MIB)
    upload(world, ann, 2 * MIB - 100_000)
    with pytest.raises(
        RateLimited, match=r"'ann' stores 10,385,760 of at most 10,485,760 bytes: .*deleted; or ask the operator"
    ):
        prepare(world, ann, 2 * MIB)
    with pytest.raises(RateLimited, match="'ann' stores") as refused:
        world.start(ann, 1, data=InlineData([bytes(200_000)]))
    answer = bodies.refusal({}, refused.value)
    assert (answer.status, answer.headers["Retry-After"]) == (429, f"{WAIT_S:.0f}")
    assert not is_refused(world, bob)
    world.clock.move(LINK_S + 1.0)
    assert is_refused(world, ann)
    reached(f"an upload or a start over the {LIMIT:,} bytes that may be stored: 429 with Retry-After")


def test_g17_links_count_until_they_expire(world: World, ann: AccountRecord) -> None:
    prepare(world, ann, LIMIT)
    assert is_refused(world, ann)
    world.clock.move(LINK_S - 1.0)
    assert is_refused(world, ann)
    world.clock.move(REREAD_S)
    assert not is_refused(world, ann)


def test_g17_small_uploads_count_as_a_mebibyte_so_that_they_can_be_listed(world: World, ann: AccountRecord) -> None:
    for _ in range(LIMIT // UPLOAD_BYTES):
        prepare(world, ann, 1)
    assert is_refused(world, ann, 1)


def test_an_upload_that_is_prepared_again_counts_once(world: World, ann: AccountRecord) -> None:
    key = prepare(world, ann, 6 * MIB).key
    prepare(world, ann, 6 * MIB, key)
    assert not is_refused(world, ann, 4 * MIB)


def test_an_upload_that_is_prepared_again_with_a_smaller_size_counts_with_the_larger_one(
    world: World, ann: AccountRecord
) -> None:
    key = prepare(world, ann, 6 * MIB).key
    prepare(world, ann, MIB, key)
    assert is_refused(world, ann, 5 * MIB)


def test_g17_each_upload_by_the_same_link_at_the_same_time_counts(world: World, ann: AccountRecord) -> None:
    """Each of them takes space of its own while it arrives, although they have the same key."""
    stored, key = StoredBytes(world.backend), f"data/{ann.account_id}/key"
    stored.promise(ann, key, 4 * MIB)
    with stored.arriving(key, 4 * MIB), stored.arriving(key, 4 * MIB):
        world.clock.move(READ_S)
        with pytest.raises(RateLimited), stored.arriving(key, 4 * MIB):
            pass
        assert stored.total(ann.account_id) == 8 * MIB
    assert not stored._arriving


def test_the_room_of_an_upload_that_fails_stays_until_its_link_expires(world: World, ann: AccountRecord) -> None:
    stored, key = StoredBytes(world.backend), f"data/{ann.account_id}/key"
    stored.promise(ann, key, 4 * MIB)
    with pytest.raises(ConnectionError), stored.arriving(key, 4 * MIB):
        raise ConnectionError
    assert stored.total(ann.account_id) == 4 * MIB
    world.clock.move(LINK_S)
    assert stored.total(ann.account_id) == 0


class Unread(dict[str, Any]):
    """Promises that must not be looked through."""

    def values(self) -> Any:
        raise AssertionError


def test_a_request_does_not_add_up_all_promises_of_its_account(world: World, ann: AccountRecord) -> None:
    """An account may have 50,000 promises, and one request may name 100 uploads."""
    stored = StoredBytes(world.backend)
    stored.promise(ann, "first", MIB)
    count = stored._counts[ann.account_id]
    count.promised = Unread(count.promised)
    stored.promise(ann, "second", 2 * MIB)
    stored.promise(ann, "first", 3 * MIB)
    stored.take_back(ann.account_id, ["second", "unknown"])
    assert stored.total(ann.account_id) == 3 * MIB


def test_the_uploads_of_an_account_are_listed_in_steps_before_a_request_counts_them(
    world: World, ann: AccountRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[str] = []

    def uploads(account_id: str) -> Iterator[tuple[str, int]]:
        listed.append(account_id)
        yield from ((f"data/{account_id}/{number}", 1) for number in range(7))

    monkeypatch.setattr(stored_bytes, "LISTED", 2)
    monkeypatch.setattr(world.backend.blobs, "uploads", uploads)
    stored = world.dispatcher.stored
    for age_s in (0.0, READ_S):
        world.clock.move(age_s)
        steps = stored.renew(ann.account_id)
        assert sum(1 for _ in steps) == 3
        assert stored.total(ann.account_id) == 7 * MIB
        stored.promise(ann, "key", MIB)
        stored.take_back(ann.account_id, ["key"])
    assert listed == [ann.account_id] * 2


def test_what_an_account_stores_while_its_uploads_are_listed_counts(
    world: World, ann: AccountRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_bytes, "LISTED", 1)
    stored = StoredBytes(world.backend)
    for _ in range(2):
        upload(world, ann, MIB)
    assert stored.total(ann.account_id) == 2 * MIB
    world.clock.move(READ_S)
    steps = stored.renew(ann.account_id)
    next(steps)
    assert list(stored.renew(ann.account_id)) == []  # one listing at a time
    stored.promise(ann, "promised", MIB)
    with stored.arriving(f"data/{ann.account_id}/arrived", MIB):
        pass
    stored.started(ann.account_id, 10)
    assert stored.total(ann.account_id) == 4 * MIB + 10
    assert list(steps) == [None]
    assert stored.total(ann.account_id) == 4 * MIB + 10
    world.clock.move(LINK_S)
    assert stored.total(ann.account_id) == 2 * MIB


def test_two_uploads_of_the_same_code_count_once(world: World, ann: AccountRecord) -> None:
    first, second = prepare_code(world, ann, 6 * MIB), prepare_code(world, ann, 6 * MIB)
    assert first.key == second.key
    world.put(first.key)
    world.clock.move(READ_S)
    assert prepare_code(world, ann, 6 * MIB).link is None
    assert not is_refused(world, ann, 9 * MIB)


def test_g17_the_data_of_a_cancelled_package_counts_until_it_is_acknowledged(world: World, ann: AccountRecord) -> None:
    data = BlobData(BlobRef(upload(world, ann, 8 * MIB), 8 * MIB))
    package_id = world.start(ann, 1, data=data)
    world.cancel(ann, package_id)
    world.settle()
    assert is_refused(world, ann, 3 * MIB)
    world.acknowledge(ann, package_id)
    world.clock.move(REREAD_S)
    assert not is_refused(world, ann, 3 * MIB)


def test_g17_results_count_and_those_of_running_packages_are_still_taken(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann, 2, chunksize=1)
    first, second = world.retrieve_all()
    for lease in (first, second):
        (start, _), *_ = lease.ranges
        blob = BlobRef(f"results/{package_id}/{lease.lease_id}/0", LIMIT)
        results = [TaskResult(start, "ok", 1, blob=blob)]
        world.publish(Publication(**lease.identity(), seq=0, results=results, closes=True))
    assert world.head(package_id).client_state == "completed"
    assert stored(world, ann) > 2 * LIMIT
    world.clock.move(READ_S)
    with pytest.raises(RateLimited, match="results are read"):
        world.start(ann, 1)
    world.acknowledge(ann, package_id)
    world.clock.move(REREAD_S)
    world.start(ann, 1)


def test_a_package_counts_its_records_its_code_and_its_data_and_after_its_deletion_only_its_records(
    world: World, ann: AccountRecord
) -> None:
    package_id = world.start(ann, 1, code=TaskCode("0" * 64, bytes(1_000)), data=InlineData([bytes(1_500)]))
    assert stored(world, ann) == PACKAGE_BYTES + 2_500 + INLINE_ITEM_BYTES
    world.work_all()
    assert stored(world, ann) > PACKAGE_BYTES + 2_500
    world.acknowledge(ann, package_id)
    assert stored(world, ann) == PACKAGE_BYTES
    spec = world.backend.packages.spec(package_id)
    assert spec is not None
    assert (spec.start.code.inline, spec.start.data) == (b"", InlineData([]))
    world.clock.move(POLICY.tombstone_s + 1.0)
    world.timer.tick()
    assert stored(world, ann) == 0


def test_uploaded_data_counts_once_while_its_package_runs(world: World, ann: AccountRecord) -> None:
    world.start(ann, 1, data=BlobData(BlobRef(upload(world, ann, 2 * MIB), 2 * MIB)))
    assert stored(world, ann) == PACKAGE_BYTES + len(b"code") + 2 * MIB
    assert BLOB_BYTES < MIB


def test_a_repeated_start_is_answered_although_the_account_stores_too_much(world: World, ann: AccountRecord) -> None:
    """The first answer was lost, and since then the account has reached its limit."""
    request = start_tasks("key", 1)
    first = world.client.start_tasks(ann, request)
    upload(world, ann, LIMIT - MIB)
    assert is_refused(world, ann)
    assert world.client.start_tasks(ann, request) == first


def test_what_can_never_be_stored_is_too_large(world: World, ann: AccountRecord) -> None:
    with pytest.raises(
        TooLarge, match=r"10,485,761 bytes are over the 10,485,760 that account 'ann' may store.*operator"
    ):
        prepare(world, ann, LIMIT + 1)


def test_the_default_account_has_no_limit(world: World, ann: AccountRecord) -> None:
    client = ClientService(world.backend._replace(default_account=ann.account_id))
    upload_request = PrepareUploads(uploads=[Upload(kind="data", size=LIMIT + 1, crc32=0)])
    assert client.prepare_uploads(ann, upload_request).uploads[0].link is not None


def test_a_restarted_master_counts_what_is_stored(world: World, ann: AccountRecord, tmp_path: Path) -> None:
    upload(world, ann, LIMIT - MIB)
    with master(tmp_path, POLICY, world.clock) as restarted:
        assert is_refused(restarted, ann, 2 * MIB)


def free(world: World, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(world.backend.blobs, "free_bytes", lambda: size)


def test_g17_an_account_leaves_as_much_of_the_disk_as_it_takes(
    world: World, ann: AccountRecord, bob: AccountRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(world, ann, 3 * MIB)
    free(world, monkeypatch, 4 * MIB)
    assert not is_refused(world, ann, MIB)
    with pytest.raises(RateLimited, match=r"stores 4,194,304 bytes, and 4,194,304 are free .*largest share"):
        prepare(world, ann, MIB)
    assert not is_refused(world, bob, 3 * MIB)


def test_on_an_almost_full_disk_uploads_and_starts_of_all_wait_and_results_are_taken(
    world: World, ann: AccountRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    package_id = world.start(ann, 1)
    free(world, monkeypatch, 0)
    owner = ClientService(world.backend._replace(default_account=ann.account_id))
    request = PrepareUploads(uploads=[Upload(kind="data", size=1, crc32=zlib.crc32(b"x"))])
    for refused in (
        lambda: prepare(world, ann, 1),
        lambda: world.start(ann, 1),
        lambda: owner.prepare_uploads(ann, request),
    ):
        with pytest.raises(Unavailable, match=r"disk has no room for .*free space") as caught:
            refused()
        answer = bodies.refusal({}, caught.value)
        assert (answer.status, "Retry-After" in answer.headers) == (503, True)
    world.work_all()
    assert world.head(package_id).client_state == "completed"


def test_on_a_store_that_is_never_full_only_uploads_wait(
    world: World, ann: AccountRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(world, ann, LIMIT)
    monkeypatch.setattr(world.backend.blobs, "free_bytes", lambda: None)
    assert is_refused(world, ann)
    world.start(ann, 1)


def test_a_start_that_waits_keeps_its_upload(world: World, ann: AccountRecord) -> None:
    key = upload(world, ann, LIMIT - MIB)
    prepare(world, ann, MIB)
    path = world.backend.blobs._path(key)  # type: ignore[attr-defined]
    with pytest.raises(RateLimited):
        world.start(ann, 1, data=BlobData(BlobRef(key, LIMIT - MIB)))
    assert path.stat().st_mtime == world.clock.now()
