"""FileBlobStore leaves a reserve of its disk free, and removes what no package uses."""

import asyncio
import errno
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qsl, urlsplit

import pytest

from cloudpar_master.adapters.embedded import blob_store
from cloudpar_master.adapters.embedded.blob_store import RESERVE_BYTES, UNSTARTED_S, FileBlobStore
from cloudpar_protocol.errors import Unavailable
from support.clock import SetClock

BODY = b"payload"
GIB = 1024**3
KEPT_S = 22 * 86_400.0


@pytest.fixture
def store(tmp_path: Path, clock: SetClock) -> FileBlobStore:
    folder = tmp_path / "blobs"
    return FileBlobStore(folder, lambda: "http://master.test", b"secret", clock, code_in_use=set, kept_s=KEPT_S)


def disk(monkeypatch: pytest.MonkeyPatch, total: int, free: int) -> None:
    usage = SimpleNamespace(total=total, free=free)
    monkeypatch.setattr(blob_store, "shutil", SimpleNamespace(disk_usage=lambda _folder: usage))


def write(store: FileBlobStore, key: str, body: AsyncIterator[bytes]) -> None:
    query = dict(parse_qsl(urlsplit(store.put_link(key, len(BODY), zlib.crc32(BODY)).url).query))
    asyncio.run(store.write(key, query, body))


async def whole() -> AsyncIterator[bytes]:
    yield BODY


@pytest.mark.parametrize(("total", "reserve"), [(1_000 * GIB, RESERVE_BYTES), (GIB, 53_687_091), (1_000, 50)])
def test_the_reserve_is_256_mebibytes_or_a_twentieth_of_a_smaller_disk(
    store: FileBlobStore, monkeypatch: pytest.MonkeyPatch, total: int, reserve: int
) -> None:
    disk(monkeypatch, total, reserve + 7)
    assert store.free_bytes() == 7
    disk(monkeypatch, total, reserve - 1)
    assert store.free_bytes() == 0


@pytest.mark.parametrize("key", ["data/a/b", "code/a/b", "results/p/l/0"])
def test_an_upload_that_needs_the_reserve_fails_as_on_a_full_disk(
    store: FileBlobStore, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    disk(monkeypatch, 1_000, 50 + len(BODY) - 1)
    with pytest.raises(OSError, match="kept for its own records") as caught:
        write(store, key, whole())
    assert caught.value.errno == errno.ENOSPC
    assert not store.has(key)
    disk(monkeypatch, 1_000, 50 + len(BODY))
    write(store, key, whole())
    assert store.has(key)


def test_the_store_of_a_pools_own_master_uses_the_whole_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: SetClock
) -> None:
    store = FileBlobStore(tmp_path, lambda: "http://master.test", b"secret", clock, code_in_use=tuple, reserves=False)
    disk(monkeypatch, 1_000, 1)
    assert store.free_bytes() is None
    write(store, "data/a/b", whole())
    assert store.has("data/a/b")


def test_what_is_still_to_come_of_an_upload_counts_as_used(
    store: FileBlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk(monkeypatch, 1_000 * GIB, 500 * GIB)  # other tests use the machine's disk at the same time
    seen: list[int] = []

    def free() -> int:
        free_bytes = store.free_bytes()
        assert free_bytes is not None
        return free_bytes

    before = free()

    async def slow() -> AsyncIterator[bytes]:
        seen.append(before - free())
        yield BODY[:2]
        seen.append(before - free())
        yield BODY[2:]

    write(store, "data/a/b", slow())
    assert seen == [len(BODY), len(BODY) - 2]
    assert free() == before
    assert list(store.uploads("a")) == [("data/a/b", len(BODY))]
    assert list(store.uploads("b")) == []
    seen.clear()
    write(store, "data/a/b", slow())
    assert seen == [0, 0]  # the same upload again is not written


def test_an_upload_that_comes_again_while_its_blob_is_deleted_is_to_be_repeated(store: FileBlobStore) -> None:
    async def meanwhile() -> AsyncIterator[bytes]:
        yield BODY
        store.delete("data/a/b")

    write(store, "data/a/b", whole())
    with pytest.raises(Unavailable, match="repeat the upload"):
        write(store, "data/a/b", meanwhile())
    write(store, "data/a/b", whole())
    assert store.has("data/a/b")


def test_an_upload_that_fails_no_longer_counts(store: FileBlobStore) -> None:
    async def hung_up() -> AsyncIterator[bytes]:
        yield BODY[:2]
        raise ConnectionError

    with pytest.raises(ConnectionError):
        write(store, "data/a/b", hung_up())
    assert list(store.uploads("a")) == []


def test_task_data_that_no_package_has_started_with_is_removed_after_a_day(
    store: FileBlobStore, clock: SetClock
) -> None:
    for key in ("data/a/unused", "data/a/used"):
        write(store, key, whole())
    assert store.exists("data/a/used")
    clock.move(UNSTARTED_S - 1.0)
    list(store.sweep(KEPT_S))
    assert store.has("data/a/unused")
    clock.move(2.0)
    list(store.sweep(KEPT_S))
    assert [store.has(key) for key in ("data/a/unused", "data/a/used")] == [False, True]


def test_a_second_upload_of_the_same_data_does_not_make_it_unused(store: FileBlobStore, clock: SetClock) -> None:
    write(store, "data/a/b", whole())
    assert store.exists("data/a/b")
    write(store, "data/a/b", whole())
    clock.move(UNSTARTED_S + 1.0)
    list(store.sweep(KEPT_S))
    assert store.has("data/a/b")


def test_a_sweep_goes_on_after_a_file_that_it_cannot_remove(
    store: FileBlobStore, monkeypatch: pytest.MonkeyPatch, clock: SetClock
) -> None:
    for name in "abc":
        write(store, f"results/p/l/{name}", whole())
    clock.move(KEPT_S + 1.0)
    unlink = Path.unlink

    def refuse_b(path: Path) -> None:
        if path.name == "b.blob":
            raise PermissionError(errno.EPERM, "not permitted")
        unlink(path)

    monkeypatch.setattr(Path, "unlink", refuse_b)
    with pytest.raises(ExceptionGroup, match="could not be removed") as caught:
        list(store.sweep(KEPT_S))
    assert [type(error) for error in caught.value.exceptions] == [PermissionError]
    assert [store.has(f"results/p/l/{name}") for name in "abc"] == [False, True, False]
