"""Finding paths that an operator has opened to tasks, but that their mode closes."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cloudpar_worker.shell.unreadable import unreadable


@pytest.fixture
def data() -> Iterator[Path]:
    """A file in folders that every user may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        for folder in (Path(name), Path(name) / "folder"):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o755)
        path = folder / "data"
        path.touch()
        path.chmod(0o644)
        yield path


def test_a_file_open_to_all_is_readable(data: Path) -> None:
    assert unreadable([str(data), str(data.parent)]) == []


@pytest.mark.parametrize(("above", "mode"), [(0, 0o640), (1, 0o754), (2, 0o700)])
def test_a_missing_permission_bit_is_noticed(data: Path, above: int, mode: int) -> None:
    [data, *data.parents][above].chmod(mode)
    assert unreadable(["/usr", str(data)]) == [str(data)]


@pytest.mark.parametrize(("mode", "found"), [(0o755, False), (0o751, True), (0o754, True)])
def test_a_folder_must_allow_listing_and_entering(data: Path, mode: int, found: bool) -> None:
    data.parent.chmod(mode)
    assert bool(unreadable([str(data.parent)])) is found


def test_the_target_of_a_link_counts(data: Path) -> None:
    link = data.parents[1] / "link"
    link.symlink_to(data)
    assert unreadable([str(link)]) == []
    data.parent.chmod(0o700)
    assert unreadable([str(link)]) == [str(link)]


def test_a_missing_file_is_unreadable(data: Path) -> None:
    assert unreadable([str(data / "none"), str(data.parent / "none")]) == [
        str(data / "none"),
        str(data.parent / "none"),
    ]
