import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from cloudpar._serialization.project import files, listings
from cloudpar._serialization.project.listings import Listings
from cloudpar._serialization.project.units import Unit

LONG_AGO_NS = 10**18


@pytest.fixture
def firm(tmp_path: Path) -> Path:
    """A package whose folders have not changed for a while."""
    folder = tmp_path / "firm"
    (folder / "data").mkdir(parents=True)
    (folder / "__init__.py").write_text("from . import pricing")
    (folder / "pricing.py").write_text("import helper")
    (folder / "data" / "table.csv").write_text("1")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "__init__.py").write_text("")
    (elsewhere / "part.py").write_text("SIZE = 1")
    (folder / "linked").symlink_to(elsewhere)
    (folder / "linked.py").symlink_to(elsewhere / "part.py")
    settle(folder)
    settle(elsewhere)
    return folder


def settle(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        if path.is_dir():
            os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that were listed."""
    seen: list[str] = []
    scandir = files.os.scandir  # type: ignore[attr-defined]

    def counting(folder: str) -> object:
        seen.append(Path(folder).name)
        return scandir(folder)

    monkeypatch.setattr(files.os, "scandir", counting)  # type: ignore[attr-defined]
    return seen


def test_an_unchanged_package_is_listed_once(firm: Path, looks: list[str]) -> None:
    here, unit = Listings(), Unit("firm", str(firm))
    first = here.of(unit)
    assert all(here.of(unit) is first for _ in range(10))
    assert looks == ["firm", "data", "linked"]
    assert first.imports == {"firm", "firm.pricing", "helper"}


def add(firm: Path) -> None:
    (firm / "more.py").write_text("")


def remove(firm: Path) -> None:
    (firm / "pricing.py").unlink()


def edit(firm: Path) -> None:
    os.utime(firm / "pricing.py", ns=(LONG_AGO_NS, LONG_AGO_NS))


def add_data(firm: Path) -> None:
    (firm / "data" / "more.csv").write_text("")


def edit_data(firm: Path) -> None:
    os.utime(firm / "data" / "table.csv", ns=(LONG_AGO_NS, LONG_AGO_NS))


def add_unnoticed(firm: Path) -> None:
    """Like a program that copies a folder and then sets its time back."""
    (firm / "more.py").write_text("")
    os.utime(firm, ns=(LONG_AGO_NS, LONG_AGO_NS))


def edit_linked(firm: Path) -> None:
    (firm.parent / "elsewhere" / "part.py").write_text("SIZE = 2")


def link_another(firm: Path) -> None:
    (firm / "linked.py").unlink()
    (firm / "linked.py").symlink_to(firm / "pricing.py")
    os.utime(firm, ns=(LONG_AGO_NS, LONG_AGO_NS))


@pytest.mark.parametrize(
    "change",
    [add, remove, edit, add_data, edit_data, add_unnoticed, edit_linked, link_another],
    ids=lambda it: it.__name__,
)
def test_a_change_before_a_call_is_seen_by_it(firm: Path, change: Callable[[Path], None]) -> None:
    here, unit = Listings(), Unit("firm", str(firm))
    first = here.of(unit)
    change(firm)
    second = here.of(unit)
    assert second.digest != first.digest
    places = {file.place for file in second.files if not file.place.startswith("firm/linked/")}
    assert places == {f"firm/{path.relative_to(firm)}" for path in firm.rglob("*.*")}


def test_among_many_data_files_an_overwritten_one_may_be_seen_later_but_code_at_once(
    firm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listings, "FEW_DATA_FILES", 0)
    monkeypatch.setattr(listings, "DATA_CHECK_S", threading.TIMEOUT_MAX)
    here, unit = Listings(), Unit("firm", str(firm))
    first = here.of(unit)
    edit_data(firm)
    assert here.of(unit) is first
    edit(firm)
    second = here.of(unit)
    assert second is not first
    monkeypatch.setattr(listings, "DATA_CHECK_S", 0)
    edit_data(firm)
    (firm / "data" / "table.csv").write_text("22")
    assert here.of(unit).digest != second.digest


def test_a_folder_that_has_just_changed_is_listed_again(firm: Path, looks: list[str]) -> None:
    here, unit = Listings(), Unit("firm", str(firm))
    os.utime(firm)
    here.of(unit)
    here.of(unit)
    assert looks == ["firm", "data", "linked"] * 2
