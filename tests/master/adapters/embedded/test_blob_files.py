"""FileBlobStore: what it stores as files."""

import asyncio
import os
import stat
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from cloudpar_master.adapters.embedded import blob_store
from cloudpar_master.adapters.embedded.blob_store import WASTE, FileBlobStore
from cloudpar_protocol.errors import IdempotencyConflict, TooLarge
from support.clock import NOW, SetClock

BODY = b"payload"


@pytest.fixture
def store(tmp_path: Path, clock: SetClock) -> FileBlobStore:
    return FileBlobStore(tmp_path / "blobs", lambda: "http://master.test", b"secret", clock, code_in_use=set)


async def at_once() -> None:
    """Return at once, as if it were always the request's turn."""


def write(
    store: FileBlobStore, key: str, body: AsyncIterator[bytes], turn: Callable[[], Awaitable[None]] = at_once
) -> None:
    query = dict(parse_qsl(urlsplit(store.put_link(key, len(BODY), zlib.crc32(BODY)).url).query))
    asyncio.run(store.write(key, query, body, turn))


async def whole() -> AsyncIterator[bytes]:
    yield BODY


def files(folder: Path) -> list[Path]:
    """List the files of a folder, without those that a thread is removing."""
    found: list[Path] = []
    for parent, folders, names in os.walk(folder):
        if WASTE in folders:
            folders.remove(WASTE)  # a walk into it could meet a folder that has just been removed
        found += [(Path(parent) / name).relative_to(folder) for name in names]
    return sorted(found)


@pytest.mark.parametrize("key", ["a", "../a", "/etc/a", "..", "a/../../b", ".", "~/a", "a\x00b", "a\nb", ".upload-x"])
def test_no_key_leads_out_of_the_folder(store: FileBlobStore, tmp_path: Path, key: str) -> None:
    write(store, key, whole())
    (path,) = files(tmp_path)
    assert path.parts[0] == "blobs"
    assert path.suffix == ".blob"
    assert ".." not in path.parts
    assert store.exists(key)


def test_only_its_owner_may_read_a_blob(store: FileBlobStore, tmp_path: Path) -> None:
    write(store, "a/b", whole())
    assert stat.S_IMODE((tmp_path / "blobs" / "a" / "b.blob").stat().st_mode) == 0o600


def test_an_upload_that_fails_leaves_no_file(store: FileBlobStore, tmp_path: Path) -> None:
    async def hung_up() -> AsyncIterator[bytes]:
        yield BODY[:3]
        raise ConnectionError

    async def too_long() -> AsyncIterator[bytes]:
        yield BODY
        yield BODY

    with pytest.raises(ConnectionError):
        write(store, "a", hung_up())
    with pytest.raises(TooLarge):
        write(store, "a", too_long())
    assert files(tmp_path) == []


def test_an_upload_of_another_size_does_not_make_the_master_read_the_blob(
    store: FileBlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def empty() -> AsyncIterator[bytes]:
        yield b""

    write(store, "a", whole())
    monkeypatch.setattr(blob_store, "_crc32", lambda _: pytest.fail("the blob was read"))
    query = dict(parse_qsl(urlsplit(store.put_link("a", 0, 0).url).query))
    with pytest.raises(IdempotencyConflict):
        asyncio.run(store.write("a", query, empty()))


def test_each_part_of_a_blob_that_is_read_again_waits_for_a_turn(
    store: FileBlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[int] = []

    async def turn() -> None:
        turns.append(len(turns))

    monkeypatch.setattr(blob_store, "READ_BYTES", 1)
    write(store, "a", whole())
    write(store, "a", whole(), turn)
    assert len(turns) > len(BODY)


def test_uploads_that_a_dead_process_left_are_removed(store: FileBlobStore, tmp_path: Path, clock: SetClock) -> None:
    write(store, ".upload-not", whole())
    (tmp_path / "blobs" / ".upload-abc").write_bytes(b"part")
    FileBlobStore(tmp_path / "blobs", lambda: "http://master.test", b"secret", clock, code_in_use=set)
    assert not (tmp_path / "blobs" / ".upload-abc").exists()
    assert store.exists(".upload-not")


def test_a_sweep_removes_blobs_that_were_unused_for_long(store: FileBlobStore, tmp_path: Path, clock: SetClock) -> None:
    for name in ("old", "used", "new", "results/p/old"):
        write(store, name, whole())
    for path in files(tmp_path):
        os.utime(tmp_path / path, (NOW - 100.0, NOW - 100.0))
    os.utime(tmp_path / "blobs" / "new.blob", (NOW, NOW))
    assert store.exists("used")
    assert len(list(store.sweep(50.0))) == 4
    assert [store.exists(name) for name in ("old", "used", "new", "results/p/old")] == [False, True, True, False]


@pytest.mark.parametrize("ahead_s", [-1e9, 1e9])
def test_a_sweep_keeps_new_blobs_however_wrong_the_machines_clock_was(
    store: FileBlobStore, tmp_path: Path, clock: SetClock, ahead_s: float
) -> None:
    """A client of this machine writes files itself, and these get the time of the machine's clock."""
    clock.date_ahead_s = ahead_s
    write(store, "results/p/uploaded", whole())
    write(store, "results/p/written", whole())
    written = tmp_path / "blobs" / "results" / "p" / "written.blob"
    os.utime(written, (clock.date(NOW), clock.date(NOW)))
    clock.move(40.0)
    list(store.sweep(50.0))
    assert store.exists("results/p/uploaded")
    assert store.exists("results/p/written")


def test_a_sweep_tolerates_files_that_another_process_removes(
    store: FileBlobStore, tmp_path: Path, clock: SetClock
) -> None:
    for number in range(5):
        write(store, f"results/p{number}/0", whole())
    clock.move(10.0)
    sweep = store.sweep(0.0)
    next(sweep)
    for number in range(5):
        store.delete(f"results/p{number}/")
    assert list(sweep) == []
    assert files(tmp_path) == []
