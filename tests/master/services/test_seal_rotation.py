"""Rotation of an account's key for seals: new packages get the new key, and earlier ones keep theirs."""

import secrets

import pytest
from msgspec.structs import replace

from cloudpar_master.adapters.key_safe import AesGcmSafe
from cloudpar_master.ports import AccountRecord
from cloudpar_master.ports.key_safe import ENCRYPTED_BYTES
from cloudpar_master.services.account_keys import KEPT
from cloudpar_protocol.account_messages import RotateSeal
from cloudpar_protocol.client_messages import StartTasks
from cloudpar_protocol.errors import BadRequest, NotFound
from cloudpar_protocol.payloads import TaskResult
from cloudpar_protocol.seals import Seals, package_id
from support.world import World, publication, start_tasks

SECRET = secrets.token_bytes(32)


@pytest.fixture
def sealing(world: World) -> World:
    """Make a world with a safe for keys."""
    return World(world.backend._replace(safe=AesGcmSafe(lambda: SECRET)), world.clock)


def key_of(world: World, account: AccountRecord, package: str | None = None) -> bytes:
    key = world.accounts.hello("user", account, package).seal_key
    assert key is not None
    return key


def rotate(world: World, account: AccountRecord, name: str = "once") -> None:
    world.accounts.rotate_seal(RotateSeal(idempotency_key=name, account_id=account.account_id))


def start(world: World, account: AccountRecord, key: bytes, name: str = "first", tasks: int = 5) -> str:
    """Start a package as a client with this key does."""
    request: StartTasks = start_tasks(name, tasks)
    seals = Seals(key, package_id(account.account_id, name, sealed=True))
    seal = seals.code(
        request.code, request.data, call=request.call, codec=request.codec, python=request.python, tasks=request.n
    )
    return world.client.start_tasks(account, replace(request, seal=seal)).package_id


def test_a_package_keeps_its_key_and_a_later_one_gets_the_new_key(sealing: World, ann: AccountRecord) -> None:
    before = key_of(sealing, ann)
    first = start(sealing, ann, before)
    rotate(sealing, ann)
    after = key_of(sealing, ann)
    assert after != before
    assert sealing.lease().seal_key == before
    second = start(sealing, ann, after, "second")
    assert (key_of(sealing, ann, first), key_of(sealing, ann, second)) == (before, after)
    leases = {lease.package_id: lease.seal_key for lease in sealing.retrieve_all()}
    assert leases[second] == after


def test_a_pool_that_was_open_during_the_rotation_goes_on_with_its_key(sealing: World, ann: AccountRecord) -> None:
    before = key_of(sealing, ann)
    rotate(sealing, ann)
    start(sealing, ann, before)
    assert sealing.lease().seal_key == before


def test_a_process_that_knows_only_earlier_keys_reads_the_new_one(sealing: World, ann: AccountRecord) -> None:
    other = World(sealing.backend, sealing.clock)
    start(sealing, ann, key_of(sealing, ann))
    other.lease()
    rotate(sealing, ann)
    after = key_of(sealing, ann)
    start(sealing, ann, after, "second")
    assert other.lease().seal_key == after
    assert key_of(other, ann) == after


def test_a_repeated_rotation_changes_nothing_and_another_one_does(sealing: World, ann: AccountRecord) -> None:
    keys = [key_of(sealing, ann)]
    for name in ("a", "a", "b", "b"):
        rotate(sealing, ann, name)
        keys.append(key_of(sealing, ann))
    assert keys[1] == keys[2] != keys[3] == keys[4]
    assert len(set(keys)) == 3


def test_the_last_keys_are_kept_and_older_ones_forgotten(sealing: World, ann: AccountRecord) -> None:
    packages = []
    for number in range(KEPT + 1):
        key = key_of(sealing, ann)
        packages.append((start(sealing, ann, key, f"package {number}"), key))
        rotate(sealing, ann, f"rotation {number}")
    assert all(key_of(sealing, ann, package) == key for package, key in packages[2:])
    newest = key_of(sealing, ann)
    assert [key_of(sealing, ann, package) for package, _ in packages[:2]] == [newest] * 2
    stored = sealing.backend.accounts.key(ann.account_id)
    assert stored is not None
    assert len(stored) // ENCRYPTED_BYTES == KEPT


def test_the_master_seals_results_of_an_earlier_worker_with_the_packages_key(
    sealing: World, ann: AccountRecord
) -> None:
    before = key_of(sealing, ann)
    package = start(sealing, ann, before, tasks=1)
    rotate(sealing, ann)
    sealing.publish(replace(publication(sealing.lease()), results=[TaskResult(0, "ok", 1, b"value")]))
    (result,) = sealing.status(ann, package).results
    assert Seals(before, package).is_result(result)


def test_a_user_gets_no_key_by_the_id_of_anothers_package(
    sealing: World, ann: AccountRecord, bob: AccountRecord
) -> None:
    package = start(sealing, ann, key_of(sealing, ann))
    rotate(sealing, ann)
    assert key_of(sealing, bob, package) == key_of(sealing, bob)
    assert key_of(sealing, bob, "unknown") == key_of(sealing, bob)
    assert sealing.accounts.hello("admin", None, package).seal_key is None


def test_a_key_can_be_rotated_before_its_first_use_and_after_its_loss(sealing: World, ann: AccountRecord) -> None:
    rotate(sealing, ann)
    before = key_of(sealing, ann)
    elsewhere = World(sealing.backend._replace(safe=AesGcmSafe(lambda: bytes(32))), sealing.clock)
    rotate(elsewhere, ann, "after the loss")
    assert key_of(elsewhere, ann) != before


def test_a_rotation_without_an_account_or_without_seals_is_refused(world: World, ann: AccountRecord) -> None:
    with pytest.raises(NotFound, match="no account 'unknown'"):
        world.accounts.rotate_seal(RotateSeal(idempotency_key="k", account_id="unknown"))
    with pytest.raises(BadRequest, match="makes no seals"):
        rotate(World(world.backend._replace(safe=None), world.clock), ann)


def test_an_encrypted_key_has_the_size_by_which_stored_keys_are_split() -> None:
    assert len(AesGcmSafe(lambda: SECRET).make("a")) == ENCRYPTED_BYTES
