"""Links for uploads, whole and in parts, on a store that accepts parts."""

from collections.abc import Iterator, Sequence

import pytest
from msgspec import structs

from cloudpar_master.ports import AccountRecord, BlobStore
from cloudpar_master.services.client_service import ClientService
from cloudpar_master.services.upload_links import PART_LINKS, UploadLinks
from cloudpar_master.services.worker_service import WorkerService
from cloudpar_protocol.client_messages import PreparedUpload, PrepareUploads, Upload
from cloudpar_protocol.errors import BadRequest, Forbidden, RateLimited, RequestError
from cloudpar_protocol.limits import PART_BYTES
from cloudpar_protocol.payloads import Link, Parts
from cloudpar_protocol.worker_messages import PrepareResult, PrepareResults
from support.world import World


class PartedBlobs(BlobStore):
    """Records the parts that callers request. Only the blobs in `there` exist."""

    takes_parts = True

    def __init__(self) -> None:
        self.asked: list[tuple[str, int, list[int], str | None]] = []
        self.there: set[str] = set()
        self.stored: list[tuple[str, int]] = []

    def put_link(self, key: str, size: int, crc32: int) -> Link:
        return Link("PUT", f"{key} {size} {crc32}")

    def part_links(self, key: str, size: int, parts_crc32: Sequence[int], upload_id: str | None, /) -> Parts | None:
        self.asked.append((key, size, list(parts_crc32), upload_id))
        return Parts(upload_id=upload_id or "new", links=[], complete=Link("POST", key))

    def exists(self, key: str, *, promise: bool = False) -> bool:
        return key in self.there

    def get_link(self, key: str) -> Link:
        return Link("GET", key)

    def uploads(self, account_id: str) -> Iterator[tuple[str, int]]:
        del account_id
        yield from self.stored

    def free_bytes(self) -> None:
        return None

    def abandon(self, prefix: str) -> None:
        raise AssertionError(prefix)

    def delete(self, key: str) -> None:
        raise AssertionError(key)


@pytest.fixture
def blobs() -> PartedBlobs:
    return PartedBlobs()


@pytest.fixture
def client(world: World, blobs: PartedBlobs) -> ClientService:
    return ClientService(world.backend._replace(blobs=blobs))


def prepare(client: ClientService, account: AccountRecord, upload: Upload) -> PreparedUpload:
    return client.prepare_uploads(account, PrepareUploads(uploads=[upload])).uploads[0]


SIZE = 4 * PART_BYTES + 1
SUMS = [1, 2, 3, 4, 5]
LARGE = Upload(kind="data", size=SIZE, crc32=7, parts_crc32=SUMS)


def test_a_client_that_can_upload_parts_gets_links_for_them(
    client: ClientService, ann: AccountRecord, blobs: PartedBlobs
) -> None:
    prepared = prepare(client, ann, LARGE)
    assert prepared.link == Link("PUT", f"{prepared.key} {SIZE} 7")
    assert prepared.parts is not None
    assert blobs.asked == [(prepared.key, SIZE, SUMS, None)]


def test_a_release_that_knows_no_parts_sends_the_whole(
    client: ClientService, ann: AccountRecord, blobs: PartedBlobs
) -> None:
    prepared = prepare(client, ann, Upload(kind="data", size=SIZE, crc32=7))
    assert (prepared.link is not None, prepared.parts, blobs.asked) == (True, None, [])


def test_an_upload_in_parts_that_goes_on_gets_new_links(
    client: ClientService, ann: AccountRecord, blobs: PartedBlobs
) -> None:
    first = prepare(client, ann, LARGE)
    again = prepare(client, ann, Upload(
        kind="data", size=SIZE, crc32=7, parts_crc32=SUMS, key=first.key, upload_id="new"
    ))  # fmt: skip
    assert again == first
    assert blobs.asked[1] == (first.key, SIZE, SUMS, "new")


SMALL = structs.replace(LARGE, size=PART_BYTES, parts_crc32=[1])
ROOM = 3 * SIZE // 2
"""Room for LARGE once, but not twice. An upload in parts that was started takes room in addition to its whole link."""


@pytest.mark.parametrize(
    ("uploads", "refusal"),
    [
        ([LARGE], RateLimited),
        ([SMALL, LARGE], RateLimited),
        ([SMALL, structs.replace(LARGE, parts_crc32=[1])], BadRequest),
        ([SMALL, structs.replace(LARGE, key="data/x/y")], Forbidden),
    ],
)
def test_a_refused_request_starts_no_upload_in_parts_and_keeps_no_room(
    world: World, ann: AccountRecord, uploads: list[Upload], refusal: type[RequestError]
) -> None:
    """The bucket aborts a started upload only after a day. Until then, it counts as the largest possible blob."""
    blobs = PartedBlobs()
    blobs.stored.append((f"data/{ann.account_id}/old", world.backend.policy.stored_bytes - ROOM))
    client = ClientService(world.backend._replace(blobs=blobs))
    for _ in range(2):
        with pytest.raises(refusal):
            client.prepare_uploads(ann, PrepareUploads(uploads=uploads))
    assert blobs.asked == []
    assert prepare(client, ann, Upload(kind="data", size=ROOM, crc32=7)).link is not None


@pytest.mark.parametrize(
    "key", ["data/other/x", "data/{me}/", "data/{me}/../x", "data/{me}/x/y", "data/{me}/\x00", "code/{me}/x"]
)
def test_new_links_are_only_for_uploads_of_the_account(
    client: ClientService, ann: AccountRecord, blobs: PartedBlobs, key: str
) -> None:
    with pytest.raises(Forbidden, match="is not this account's task data: use the key that prepare_uploads answered"):
        prepare(client, ann, Upload(kind="data", size=1, crc32=7, key=key.format(me=ann.account_id)))
    assert not blobs.asked


def test_the_key_of_task_code_is_its_hash(client: ClientService, ann: AccountRecord, blobs: PartedBlobs) -> None:
    code = Upload(kind="code", size=SIZE, crc32=7, hash="a" * 64, parts_crc32=SUMS, key="data/x/y")
    prepared = prepare(client, ann, code)
    assert prepared.key == f"code/{ann.account_id}/{'a' * 64}"
    assert blobs.asked == [(prepared.key, SIZE, SUMS, None)]
    blobs.there.add(prepared.key)
    assert prepare(client, ann, code) == PreparedUpload(key=prepared.key)


@pytest.mark.parametrize(("size", "sums"), [(SIZE, SUMS[:4]), (SIZE, [*SUMS, 6]), (0, [0]), (2**63 - 1, SUMS)])
def test_an_upload_without_a_checksum_for_each_part_is_refused(blobs: PartedBlobs, size: int, sums: list[int]) -> None:
    with pytest.raises(BadRequest, match="send one for each 16,777,216 bytes"):
        UploadLinks(blobs).make("k", Upload(kind="data", size=size, crc32=7, parts_crc32=sums))


def test_an_answer_has_a_bounded_number_of_links(blobs: PartedBlobs) -> None:
    links = UploadLinks(blobs)
    sums = [0] * 64
    made = [links.make("k", Upload(kind="data", size=64 * PART_BYTES, crc32=7, parts_crc32=sums)) for _ in range(20)]
    assert sum(parts is not None for _, parts in made) == PART_LINKS // 64
    assert all(link.method == "PUT" for link, _ in made)


def test_results_are_uploaded_in_parts(world: World, blobs: PartedBlobs) -> None:
    worker = WorkerService(world.backend._replace(blobs=blobs))
    wanted = PrepareResult(package_id="p", lease_id="l", seq=3, size=SIZE, crc32=7, parts_crc32=SUMS, upload_id="u")
    (prepared,) = worker.prepare_results(PrepareResults(results=[wanted])).results
    assert prepared.key == "results/p/l/3"
    assert prepared.parts is not None
    assert blobs.asked == [("results/p/l/3", SIZE, SUMS, "u")]
