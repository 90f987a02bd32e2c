"""PayloadStore with the payload folder of a pool's own master: large payloads stay in files, which executors map."""

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path

import pytest

from cloudpar_protocol.large_buffers import LARGE_BYTES
from cloudpar_protocol.payloads import BlobData, BlobRef, Link, TaskCode
from cloudpar_protocol.transport.payload_folder import PayloadFolder
from cloudpar_protocol.worker_messages import Lease
from cloudpar_worker.shell import code_store
from cloudpar_worker.shell.code_store import code_key
from cloudpar_worker.shell.master_client import MasterClient, PayloadRefused
from cloudpar_worker.shell.payload_file import InFile
from cloudpar_worker.shell.payload_store import PayloadStore
from cloudpar_worker.shell.reach import Reach
from support.leases import code_from, data_blob, lease_of

LARGE = [bytes([number]) * (LARGE_BYTES + number) for number in range(3)]


@pytest.fixture
def store(tmp_path: Path) -> PayloadStore:
    """A store whose master, which is never called, keeps its payloads in `tmp_path`."""
    client = MasterClient("http://127.0.0.1:9", "token", Reach(lambda _: None), PayloadFolder(str(tmp_path)))
    return PayloadStore(client, 10**9)


def written(folder: Path, body: bytes, name: str = "data") -> Link:
    (folder / name).write_bytes(body)
    return Link("GET", f"file://{folder / name}")


def over(folder: Path, items: list[bytes], **fields: object) -> Lease:
    """A lease of a package whose data, these items, is a file in the folder."""
    body, blob = data_blob(items, "data", bytes)
    data = {"data": BlobData(blob), "data_link": written(folder, body)}
    return lease_of(code_from(b"code"), len(items), **data, **fields)


def read(found: Sequence[bytes | memoryview] | InFile | None) -> list[bytes]:
    assert isinstance(found, InFile)
    return [read_place(found.file, place) for place in found.places]


def read_place(file: io.FileIO, place: tuple[int, int]) -> bytes:
    file.seek(place[0])
    return file.read(place[1] - place[0])


def test_large_items_stay_in_their_file(store: PayloadStore, tmp_path: Path) -> None:
    lease = over(tmp_path, LARGE)
    first, mean = store.fetch(lease, (0, 3))
    assert (first, mean) == ((0, 3), sum(map(len, LARGE)) // 3)
    assert read(store.items(lease, 1, 3)) == LARGE[1:]
    store.forget(lease.lease_id)


def test_items_of_several_downloads_are_in_one_file(store: PayloadStore, tmp_path: Path) -> None:
    lease = over(tmp_path, LARGE)
    for task in (2, 0, 1):
        store.fetch(lease, (task, task + 1))
    assert read(store.items(lease, 0, 3)) == LARGE
    store.discard(lease.lease_id, (0, 1))
    store.forget(lease.lease_id)


@pytest.mark.parametrize(("items", "fields"), [([b"a", b"b", LARGE[0]], {}), (LARGE, {"codec": "msgpack"})])
def test_small_items_and_other_codecs_are_read_into_memory(
    items: list[bytes], fields: dict[str, object], store: PayloadStore, tmp_path: Path
) -> None:
    lease = over(tmp_path, items, **fields)
    store.fetch(lease, (0, 3))
    assert store.items(lease, 0, 3) == items


def test_a_file_shorter_than_its_payload_is_refused(store: PayloadStore, tmp_path: Path) -> None:
    """Reading a mapping beyond the end of its file would end the executor with SIGBUS."""
    lease = over(tmp_path, LARGE)
    store.fetch(lease, (0, 1))  # from now on the agent has the table of offsets
    store.forget(lease.lease_id)
    with (tmp_path / "data").open("r+b") as file:
        file.truncate(len(LARGE[0]))
    with pytest.raises(PayloadRefused, match="shorter than the payload"):
        store.fetch(lease, (1, 2))


def test_the_file_of_a_lease_is_closed_with_the_lease(store: PayloadStore, tmp_path: Path) -> None:
    lease = over(tmp_path, LARGE)
    store.fetch(lease, (0, 3))
    found = store.items(lease, 0, 1)
    store.forget(lease.lease_id)
    assert isinstance(found, InFile)
    assert found.file.closed


def test_large_code_stays_in_its_file_until_it_is_trimmed(
    store: PayloadStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = written(tmp_path, LARGE[0], "code")
    code = TaskCode(hashlib.sha256(LARGE[0]).hexdigest(), blob=BlobRef("code", len(LARGE[0])))
    lease = lease_of(code, 1, code_link=link)
    for _ in range(2):
        store.fetch(lease, (0, 1))
    kept = store.codes.of(lease)
    assert read(kept) == [LARGE[0]]  # type: ignore[arg-type]
    monkeypatch.setattr(code_store, "CODE_BYTES", 1)
    store.codes.trim({code_key(lease)})
    assert not kept.file.closed  # type: ignore[union-attr]
    store.codes.trim(set())
    assert kept.file.closed  # type: ignore[union-attr]


def test_large_code_that_is_not_what_its_hash_says_is_refused(store: PayloadStore, tmp_path: Path) -> None:
    code = TaskCode(hashlib.sha256(b"other").hexdigest(), blob=BlobRef("code", len(LARGE[0])))
    with pytest.raises(PayloadRefused, match="hash"):
        store.fetch(lease_of(code, 1, code_link=written(tmp_path, LARGE[0], "code")), (0, 1))
