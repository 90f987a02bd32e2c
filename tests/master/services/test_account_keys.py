"""Accounts' keys: made once, stored encrypted, handed to clients and, with leases, to agents."""

import secrets
from pathlib import Path

import pytest
from msgspec.structs import replace

from cloudpar_master.adapters.key_safe import AesGcmSafe
from cloudpar_master.ports import AccountRecord
from cloudpar_master.services.account_keys import AccountKeys
from cloudpar_master.services.steps import finish
from cloudpar_protocol.errors import BadRequest
from cloudpar_protocol.payloads import BlobRef, InlineData, TaskResult
from cloudpar_protocol.seals import Seals, is_sealed
from cloudpar_protocol.worker_messages import PublishResults
from support.world import World, publication

SECRET = secrets.token_bytes(32)


@pytest.fixture
def sealing(world: World) -> World:
    """Make a world with a safe for keys."""
    return World(world.backend._replace(safe=AesGcmSafe(lambda: SECRET)), world.clock)


def key_of(world: World, account: AccountRecord) -> bytes:
    key = world.accounts.hello("user", account).seal_key
    assert key is not None
    return key


def test_a_key_is_made_once_and_for_one_account(sealing: World, ann: AccountRecord, bob: AccountRecord) -> None:
    key = key_of(sealing, ann)
    assert len(key) == 32
    assert key_of(World(sealing.backend, sealing.clock), ann) == key
    assert key_of(sealing, bob) != key
    assert sealing.accounts.hello("worker", None).seal_key is None
    assert sealing.accounts.hello("admin", None).seal_key is None


def test_g20_keys_are_stored_encrypted(sealing: World, ann: AccountRecord, tmp_path: Path) -> None:
    key = key_of(sealing, ann)
    files = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    stored = sealing.backend.accounts.key(ann.account_id)
    assert stored is not None
    assert stored in files
    assert key not in files
    assert AesGcmSafe(lambda: SECRET).open(ann.account_id, stored) == key
    assert AesGcmSafe(lambda: SECRET).open("another", stored) is None
    assert AesGcmSafe(lambda: bytes(32)).open(ann.account_id, stored) is None
    assert AesGcmSafe(lambda: SECRET).open(ann.account_id, b"") is None


def test_a_key_that_cannot_be_decrypted_is_made_again_and_logged(
    sealing: World, ann: AccountRecord, caplog: pytest.LogCaptureFixture
) -> None:
    before = key_of(sealing, ann)
    assert not caplog.messages
    elsewhere = World(sealing.backend._replace(safe=AesGcmSafe(lambda: bytes(32))), sealing.clock)
    after = key_of(elsewhere, ann)
    assert after != before
    assert key_of(World(elsewhere.backend, elsewhere.clock), ann) == after
    (said,) = caplog.messages
    assert ann.account_id in said
    assert "was lost" in said


def test_of_two_masters_that_make_a_key_at_once_one_wins(sealing: World, ann: AccountRecord) -> None:
    store, safe = sealing.backend.accounts, AesGcmSafe(lambda: SECRET)
    one, other = safe.make(ann.account_id), safe.make(ann.account_id)
    assert store.keep_key(ann.account_id, one, None) == one
    assert store.keep_key(ann.account_id, other, None) == one
    assert store.keep_key(ann.account_id, other, one) == other
    assert store.keep_key("unknown", one, None) is None
    assert AccountKeys(sealing.backend).key(ann.account_id) == safe.open(ann.account_id, other)


def test_a_sealed_package_has_another_id_and_its_lease_the_key(sealing: World, ann: AccountRecord) -> None:
    plain = sealing.start(ann, tasks=5)
    assert not is_sealed(plain)
    lease = sealing.lease()
    assert (lease.seal, lease.seal_key) == (None, None)
    sealed = sealing.start(ann, tasks=5, seal=b"s" * 16)
    assert is_sealed(sealed)
    lease = sealing.lease()
    assert (lease.package_id, lease.seal, lease.seal_key) == (sealed, b"s" * 16, key_of(sealing, ann))


def test_a_lease_has_the_seals_of_its_items(sealing: World, ann: AccountRecord) -> None:
    items = [bytes([index]) for index in range(10)]
    made = b"".join(bytes([index]) * 16 for index in range(10))
    sealing.start(ann, tasks=10, data=InlineData(items, made), seal=b"s" * 16)
    for lease in sealing.retrieve():
        assert lease.data == InlineData(items[lease.start : lease.end], made[16 * lease.start : 16 * lease.end])


@pytest.mark.parametrize(("seal", "seals"), [(b"s" * 16, b""), (b"s" * 16, bytes(15)), (None, bytes(32))])
def test_a_sealed_package_needs_a_seal_for_each_item_and_another_none(
    sealing: World, ann: AccountRecord, seal: bytes | None, seals: bytes
) -> None:
    with pytest.raises(BadRequest, match="one seal a task"):
        sealing.start(ann, tasks=2, data=InlineData([b"a", b"b"], seals), seal=seal)


def test_the_master_seals_the_results_of_a_worker_that_cannot(sealing: World, ann: AccountRecord) -> None:
    package_id = sealing.start(ann, tasks=3, seal=b"s" * 16)
    lease = sealing.lease()
    blob = BlobRef(f"results/{package_id}/{lease.lease_id}/0", 5)
    results = [TaskResult(0, "ok", 1, b"value"), TaskResult(1, "ok", 1, blob=blob), TaskResult(2, "error", 1)]
    sealing.publish(replace(publication(lease), results=results))
    seals = Seals(key_of(sealing, ann), package_id)
    inline, placed, failed = sorted(sealing.status(ann, package_id).results, key=lambda result: result.index)
    assert seals.is_result(inline)
    assert seals.is_result(replace(placed, data=b"value"))
    assert failed.seal is None


def test_results_that_a_worker_sealed_are_passed_on_unchanged(sealing: World, ann: AccountRecord) -> None:
    package_id = sealing.start(ann, tasks=1, seal=b"s" * 16)
    made = replace(publication(sealing.lease()), results=[TaskResult(0, "ok", 1, b"value", seal=b"r" * 16)])
    finish(sealing.worker.publish_results(PublishResults(worker_id="w", executors=1, publications=[made], seals=True)))
    (result,) = sealing.status(ann, package_id).results
    assert result.seal == b"r" * 16
