import pytest

from cloudpar_master.ports import AccountRecord
from cloudpar_protocol.client_messages import PreparedUpload, PrepareUploads, Upload
from cloudpar_protocol.errors import BadRequest, TooLarge
from cloudpar_protocol.limits import BLOB_BYTES
from support.world import World

HASH = "ab" * 32


def prepare(world: World, account: AccountRecord, *uploads: Upload) -> list[PreparedUpload]:
    return world.client.prepare_uploads(account, PrepareUploads(uploads=list(uploads))).uploads


def test_every_upload_of_data_has_a_key_of_its_own(world: World, ann: AccountRecord) -> None:
    upload = Upload(kind="data", size=10, crc32=1)
    one, two = prepare(world, ann, upload, upload)
    assert one.key != two.key
    assert one.key.startswith(f"data/{ann.account_id}/")
    assert one.link is not None
    assert one.link.method == "PUT"


def test_code_is_stored_under_its_hash_and_uploaded_once(world: World, ann: AccountRecord, bob: AccountRecord) -> None:
    upload = Upload(kind="code", size=10, crc32=1, hash=HASH)
    (first,) = prepare(world, ann, upload)
    assert first.key == f"code/{ann.account_id}/{HASH}"
    assert first.link is not None
    world.put(first.key)
    (again,) = prepare(world, ann, upload)
    assert again == PreparedUpload(key=first.key, link=None)
    (of_bob,) = prepare(world, bob, upload)
    assert of_bob.link is not None, "one account never learns what another has"


def test_an_upload_of_code_without_its_hash_is_refused(world: World, ann: AccountRecord) -> None:
    with pytest.raises(BadRequest, match="an upload of task code needs its SHA-256 in `hash`"):
        prepare(world, ann, Upload(kind="code", size=10, crc32=1))


def test_an_upload_over_the_limit_is_refused(world: World, ann: AccountRecord) -> None:
    with pytest.raises(TooLarge, match="over the limit of 1,073,741,824: split the work into several maps"):
        prepare(world, ann, Upload(kind="data", size=BLOB_BYTES + 1, crc32=1))
