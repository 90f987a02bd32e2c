"""Payloads as files of a pool's own master."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from cloudpar_protocol.errors import BadRequest, NotFound
from cloudpar_protocol.transport.payload_folder import MAPPED_BYTES, UPLOAD, PayloadFolder


def uses(folder: PayloadFolder, url: str) -> list[Callable[[], object]]:
    """All ways to use a link."""
    return [lambda: folder.get(url, 0, 1), lambda: folder.put(url, [b"other"]), lambda: folder.view(url, 0, 1)]


def test_a_payload_is_written_once_and_read_in_parts(tmp_path: Path) -> None:
    folder, url = PayloadFolder(str(tmp_path)), (tmp_path / "data" / "a%2Fb.blob").as_uri()
    assert PayloadFolder.has(url)
    folder.put(url, [b"pay", memoryview(b"load")])
    folder.put(url, [b"another"])
    parts = [bytes(folder.get(url, *part)) for part in ((0, 7), (3, 5), (5, 9))]
    assert parts == [b"payload", b"lo", b"ad"]
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["a%2Fb.blob"]
    assert (tmp_path / "data" / "a%2Fb.blob").stat().st_mode & 0o777 == 0o600


def test_a_view_of_a_payload_stays_when_its_file_is_removed(tmp_path: Path) -> None:
    folder, url = PayloadFolder(str(tmp_path)), (tmp_path / "k").as_uri()
    body = bytes(range(250)) * 4_000
    folder.put(url, [body])
    spans = (0, 3), (4_090, 900_000), (500_000, 1_200_000), (999_999, 1_000_001), (1_000_000, 2_000_000)
    views = {span: folder.view(url, *span) for span in spans}
    (tmp_path / "k").unlink()
    assert {(start, end): body[start:end] for start, end in views} == views


@pytest.mark.parametrize(("size", "held"), [(MAPPED_BYTES - 1, 0), (MAPPED_BYTES, 1)])
def test_only_a_large_view_keeps_a_file_open(tmp_path: Path, size: int, held: int) -> None:
    folder, url = PayloadFolder(str(tmp_path)), (tmp_path / "k").as_uri()
    folder.put(url, [bytes(size)])
    before = psutil.Process().num_fds()
    view = folder.view(url, 0, size)
    assert psutil.Process().num_fds() - before == held
    assert len(view) == size


def test_a_published_draft_is_a_payload_and_another_one_leaves_nothing(tmp_path: Path) -> None:
    folder, url = PayloadFolder(str(tmp_path)), (tmp_path / "data" / "k").as_uri()
    with folder.draft() as draft, folder.draft() as other:
        draft.write(b"payload")
        other.write(b"another")
        folder.publish(url, draft)
        folder.publish(url, draft)  # repeated, since the first answer may be lost
    assert folder.get(url, 0, 9) == b"payload"
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["k"]


def test_drafts_of_a_process_that_was_killed_are_removed_and_no_others(tmp_path: Path) -> None:
    folder, killed = PayloadFolder(str(tmp_path)), os.getpid() + 1
    (tmp_path / f"{UPLOAD}{killed}-a").write_bytes(b"half")
    (tmp_path / f"{UPLOAD}{killed}0-b").write_bytes(b"of another process")
    with folder.draft() as draft:
        assert Path(draft.path).name.startswith(f"{UPLOAD}{os.getpid()}-")
        folder.remove_drafts(killed)
        assert {path.name for path in tmp_path.iterdir()} == {Path(draft.path).name, f"{UPLOAD}{killed}0-b"}


def test_a_draft_can_be_closed_after_its_folder_was_removed(tmp_path: Path) -> None:
    place = tmp_path / "pool"
    place.mkdir()
    with PayloadFolder(str(place)).draft() as draft:
        draft.write(b"payload")
        shutil.rmtree(place)


def test_a_payload_that_was_deleted_is_not_found(tmp_path: Path) -> None:
    folder, url = PayloadFolder(str(tmp_path)), (tmp_path / "k").as_uri()
    for read in folder.get, folder.view:
        with pytest.raises(NotFound, match="deleted"):
            read(url, 0, 1)


def test_a_link_that_leads_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.write_bytes(b"private")
    (inside / "link").symlink_to(outside)
    folder = PayloadFolder(str(inside))
    for path in (outside, inside / ".." / "outside", inside / "link", tmp_path / "inside2" / "k"):
        for use in uses(folder, f"file://{path}"):
            with pytest.raises(BadRequest, match="outside the folder"):
                use()
        with folder.draft() as draft, pytest.raises(BadRequest, match="outside the folder"):
            folder.publish(f"file://{path}", draft)
    assert outside.read_bytes() == b"private"
    assert not list(tmp_path.rglob(f"{UPLOAD}*"))


def test_a_folder_that_was_removed_is_not_made_again(tmp_path: Path) -> None:
    folder, url = PayloadFolder(str(tmp_path / "data")), (tmp_path / "data" / "blobs" / "k").as_uri()
    for use in (*uses(folder, url), folder.draft):
        with pytest.raises(NotFound, match="data, where this pool keeps its payloads, was removed: make a new pool"):
            use()
    assert not list(tmp_path.iterdir())


def test_a_folder_that_another_user_has_made_meanwhile_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, url = PayloadFolder(str(tmp_path)), (tmp_path / "k").as_uri()
    (tmp_path / "k").write_bytes(b"theirs")
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    for use in (*uses(folder, url), folder.draft):
        with pytest.raises(BadRequest, match="belongs to another user"):
            use()
