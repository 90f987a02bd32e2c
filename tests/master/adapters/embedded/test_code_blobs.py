"""Task code in a data folder: which of it stays, and which is removed when there is too much."""

import asyncio
import os
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from msgspec.structs import replace

from cloudpar_master.adapters.embedded import code_blobs
from cloudpar_master.adapters.embedded.blob_store import FileBlobStore
from cloudpar_master.adapters.embedded.code_blobs import PROMISED_S, TRIM_S
from cloudpar_master.adapters.embedded.database import Database
from cloudpar_master.adapters.embedded.package_store import SqlitePackageStore, code_in_use
from cloudpar_master.core.head import Head, Spec
from cloudpar_protocol.link_urls import FILES
from cloudpar_protocol.parts import NOT_CHECKED
from cloudpar_protocol.payloads import BlobRef, TaskCode
from cloudpar_protocol.transport.payload_folder import PayloadFolder
from support.clock import NOW, SetClock
from support.heads import altered
from support.packages import make_head, make_spec

SIZE, ROOM = 1_000, 3
"""Bytes of each blob of code, and how many blobs fit."""


class Folder:
    """A data folder, and the requests of its clients."""

    def __init__(self, path: Path, database: Database, clock: SetClock) -> None:
        self.base = ""
        self.blobs = FileBlobStore(
            path / "blobs",
            lambda: self.base,
            b"secret",
            clock,
            code_in_use=lambda: code_in_use(database),
            code_bytes=ROOM * SIZE,
        )
        self.packages = SqlitePackageStore(database, started=self.blobs.started)
        self.folder = path / "blobs" / "code"
        self.clock = clock

    def upload(self, name: str, size: int = SIZE) -> None:
        """Upload code, as a client does before it starts a package whose code is missing."""

        async def body() -> AsyncIterator[bytes]:
            yield bytes(size)

        self.base = ""
        self.clock.move(1.0)
        link = self.blobs.put_link(f"code/a/{name}", size, zlib.crc32(bytes(size)))
        asyncio.run(self.blobs.write(f"code/a/{name}", dict(parse_qsl(urlsplit(link.url).query)), body()))
        self.trim()

    def write(self, name: str) -> None:
        """Write code to the file that the master names, as the client of the same pool does."""
        self.base = FILES
        self.clock.move(1.0)
        link = self.blobs.put_link(f"code/a/{name}", SIZE, NOT_CHECKED)
        PayloadFolder(str(self.folder.parent)).put(link.url, [bytes(SIZE)])
        path = next(self.folder.rglob(f"{name}.blob"))
        os.utime(path, (self.clock.now(), self.clock.now()))  # on this test's clock

    def package(self, name: str, package_id: str | None = None) -> tuple[Spec, Head]:
        """Make a package with this code."""
        spec = make_spec(package_id or f"package of {name}")
        code = TaskCode("0" * 64, blob=BlobRef(f"code/a/{name}", SIZE))
        return replace(spec, start=replace(spec.start, code=code)), make_head(spec)

    def start(self, name: str, package_id: str | None = None) -> None:
        self.packages.create(*self.package(name, package_id))
        self.trim()

    def trim(self) -> None:
        """Remove code that is too much, as the master's process does each second."""
        for _ in self.blobs.trim():
            pass

    def end(self, name: str, package_id: str | None = None) -> None:
        head = self.packages.load(package_id or f"package of {name}")
        assert head is not None
        assert self.packages.save(altered(head, version=head.version + 1, state="completed"), NOW)

    def use(self, name: str, package_id: str | None = None) -> None:
        """Start and end a package with this code."""
        self.start(name, package_id)
        self.end(name, package_id)

    def run(self, names: str) -> None:
        """Upload the code of each of these names, and use it once."""
        for name in names:
            self.upload(name)
            self.use(name)

    @property
    def names(self) -> str:
        return "".join(sorted(path.stem for path in self.folder.rglob("*.blob")))


@pytest.fixture
def folder(tmp_path: Path, database: Database, clock: SetClock) -> Folder:
    return Folder(tmp_path, database, clock)


def test_code_of_ended_packages_stays_up_to_a_size(folder: Folder) -> None:
    folder.run("abcde")
    assert folder.names == "cde"


def test_code_that_was_used_last_stays(folder: Folder) -> None:
    folder.run("abc")
    folder.clock.move(1.0)
    assert folder.blobs.exists("code/a/a")
    folder.use("a", "again")
    folder.run("d")
    assert folder.names == "acd"


def test_code_of_running_packages_stays_even_if_it_is_too_much(folder: Folder) -> None:
    for name in "abcde":
        folder.upload(name)
        folder.start(name)
    assert folder.names == "abcde"
    for name in "abc":
        folder.end(name)
    folder.run("f")
    assert folder.names == "def"


def test_code_that_a_client_was_promised_stays_until_it_has_started(folder: Folder) -> None:
    folder.run("a")
    assert folder.blobs.exists("code/a/a", promise=True)  # the answer to one client
    assert folder.blobs.exists("code/a/a", promise=True)  # the answer to another one
    folder.use("a", "of the first")
    folder.run("bcd")
    assert folder.names == "acd"
    folder.use("a", "of the second")
    folder.run("e")
    assert folder.names == "cde"


def test_a_blob_with_many_promises_takes_no_more_memory_than_with_one(folder: Folder) -> None:
    folder.upload("a")
    for _ in range(1_000):
        assert folder.blobs.exists("code/a/a", promise=True)
    assert len(folder.blobs._code._promises) == 1
    for number in range(1_001):
        assert "a" in str(folder.blobs._code._promises)
        folder.start("a", f"package {number}")
    assert not folder.blobs._code._promises


def test_promises_that_have_expired_are_forgotten_although_there_is_little_code(folder: Folder) -> None:
    folder.upload("a")
    folder.clock.move(PROMISED_S)
    folder.upload("b")
    assert len(folder.blobs._code._promises) == 1


def test_a_promised_code_blob_is_removed_if_no_package_starts(folder: Folder) -> None:
    for name in "abcd":
        folder.upload(name)
    assert folder.names == "abcd"
    folder.clock.move(PROMISED_S)
    folder.trim()
    assert folder.names == "bcd"


def test_a_restarted_master_keeps_code_blobs_that_the_last_one_promised(
    folder: Folder, tmp_path: Path, database: Database
) -> None:
    for name in "abc":
        folder.upload(name)
    after = Folder(tmp_path, database, folder.clock)
    after.run("de")
    assert after.names == "abce"
    after.clock.move(PROMISED_S)
    after.run("f")
    assert after.names == "cef"


def test_code_that_clients_write_themselves_stays_up_to_the_same_size(folder: Folder) -> None:
    for name in "abcde":
        folder.write(name)
        folder.start(name)
        folder.end(name)
    assert folder.names == "cde"


def test_code_that_a_client_has_just_written_stays_until_it_has_started(folder: Folder) -> None:
    folder.write("a")
    folder.run("bcde")
    assert folder.names == "ade"


def test_code_that_two_clients_write_at_once_is_counted_once(folder: Folder) -> None:
    for name in "aa":
        folder.write(name)
    for number in range(2):
        folder.start("a", f"package {number}")
        folder.end("a", f"package {number}")
    folder.run("bc")
    assert folder.names == "abc"


def test_a_second_upload_of_the_same_code_is_counted_once(folder: Folder) -> None:
    for name in "aaaabc":
        folder.run(name) if name != "a" else folder.upload(name)
    assert folder.names == "abc"


def test_uploads_do_not_read_the_folder_each_time_although_there_is_too_much_code(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abcd":
        folder.upload(name)
        folder.start(name)
    reads, files = list[Path](), code_blobs._files

    def counting(path: Path, failed: Callable[[OSError], object]) -> Iterator[tuple[Path, float, int]]:
        reads.append(path)
        return files(path, failed)

    monkeypatch.setattr(code_blobs, "_files", counting)
    for number in range(50):
        folder.upload(f"small{number}", size=1)
    assert reads == []
    folder.clock.move(TRIM_S)
    folder.trim()
    folder.trim()
    assert reads.count(folder.folder) == 1


def test_code_that_grows_fast_is_trimmed_before_the_minute_is_over(folder: Folder) -> None:
    for name in "abcdefgh":
        folder.run(name)
        assert len(folder.names) <= ROOM


def test_a_trim_leaves_code_that_is_promised_or_started_while_it_is_under_way(folder: Folder) -> None:
    for name in "abcde":
        folder.upload(name)
    folder.clock.move(PROMISED_S)
    trim = folder.blobs.trim()
    next(trim)
    assert folder.blobs.exists("code/a/a")
    folder.packages.create(*folder.package("b"))
    assert folder.blobs.exists("code/a/c")
    folder.packages.create(*folder.package("c"))
    folder.end("c")
    list(trim)
    assert folder.names == "abc"


def test_a_trim_pauses_after_each_file_and_package(folder: Folder) -> None:
    for name in "abcde":
        folder.upload(name)
        folder.start(name)
    folder.clock.move(TRIM_S)
    assert len(list(folder.blobs.trim())) == 10


def test_code_that_cannot_be_removed_does_not_keep_other_code_from_being_removed(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlink = Path.unlink

    def refuse(path: Path, **more: bool) -> None:
        if path.stem == "a":
            raise PermissionError(13, "Permission denied")
        unlink(path, **more)

    for name in "abc":
        folder.run(name)
    monkeypatch.setattr(Path, "unlink", refuse)
    for name, left in (("d", "acd"), ("e", "ade")):
        folder.clock.move(TRIM_S)
        with pytest.raises(ExceptionGroup, match="could not be read or removed") as raised:
            folder.upload(name)
        assert len(raised.value.exceptions) == 1
        assert folder.names == left


def test_a_folder_of_code_that_cannot_be_read_does_not_keep_other_code_from_being_removed(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir = os.scandir
    for name in "abc":
        folder.run(name)
    (folder.folder / "broken").mkdir()

    def fail(path: Path) -> object:
        if Path(path).name == "broken":
            raise OSError(5, "Input/output error")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", fail)
    with pytest.raises(ExceptionGroup, match="could not be read or removed"):
        folder.upload("d")
    monkeypatch.undo()
    assert folder.names == "bcd"


def test_a_master_starts_although_code_and_what_is_left_of_an_upload_cannot_be_read_or_removed(
    folder: Folder,
    database: Database,
    clock: SetClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    folder.run("a")
    left, code = folder.folder.parent / ".upload-x", folder.folder / "a"
    left.write_bytes(b"x")
    unlink, scandir = Path.unlink, os.scandir

    def refuse(path: Path, **more: bool) -> None:
        if path == left:
            raise PermissionError(13, "Permission denied")
        unlink(path, **more)

    def fail(path: Path) -> object:
        if Path(path) == code:
            raise OSError(5, "Input/output error")
        return scandir(path)

    monkeypatch.setattr(Path, "unlink", refuse)
    monkeypatch.setattr(os, "scandir", fail)
    Folder(folder.folder.parent.parent, database, clock)
    assert "what is left of an upload cannot be removed" in caplog.text
    assert "task code cannot be read" in caplog.text
