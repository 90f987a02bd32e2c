"""What tasks may read by its name, but not by its mode, is found."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cloudpar_worker.shell.unreadable import unreadable


@pytest.fixture
def data() -> Iterator[Path]:
    """A file in folders that everybody may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        for folder in (Path(name), Path(name) / "folder"):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o755)
        path = folder / "data"
        path.touch()
        path.chmod(0o644)
        yield path


def test_what_everybody_may_read_is_readable(data: Path) -> None:
    assert unreadable([str(data), str(data.parent)]) == []


@pytest.mark.parametrize(("above", "mode"), [(0, 0o640), (1, 0o754), (2, 0o700)])
def test_a_bit_that_lacks_is_seen(data: Path, above: int, mode: int) -> None:
    [data, *data.parents][above].chmod(mode)
    assert unreadable(["/usr", str(data)]) == [str(data)]


@pytest.mark.parametrize(("mode", "found"), [(0o755, False), (0o751, True), (0o754, True)])
def test_a_folder_is_to_be_listed_and_entered(data: Path, mode: int, found: bool) -> None:
    data.parent.chmod(mode)
    assert bool(unreadable([str(data.parent)])) is found


def test_where_a_link_leads_counts(data: Path) -> None:
    link = data.parents[1] / "link"
    link.symlink_to(data)
    assert unreadable([str(link)]) == []
    data.parent.chmod(0o700)
    assert unreadable([str(link)]) == [str(link)]


def test_what_is_not_there_nobody_reads(data: Path) -> None:
    assert unreadable([str(data / "none"), str(data.parent / "none")]) == [
        str(data / "none"),
        str(data.parent / "none"),
    ]
